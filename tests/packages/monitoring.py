"""Checks the alerts and the dashboard in packaging/, and prints the metrics that they use.

    monitoring.py PACKAGING

Every expression is parsed by a parser of PromQL. The shape of both files is checked here: what Prometheus and Grafana require. Then one
JSON object is printed: for each file, the names of the metrics in its expressions. Any problem ends the program with a message. Knows
nothing of what Hob exports.
"""

import json
import re
import sys
from pathlib import Path

import promql_parser
import yaml

DURATION = re.compile(r"(\d+(ms|[smhdwy]))+")

# Grafana replaces these before Prometheus sees an expression.
GRAFANA_VARIABLES = {"$__rate_interval": "5m", "$instance": ".*"}


def require(condition, message):
    if not condition:
        sys.exit(f"!! {message}")


def metrics(expression):
    """The names of the metrics in an expression."""
    try:
        return selected(promql_parser.parse(expression))
    except ValueError as error:
        sys.exit(f"!! {expression}: {error}")


def selected(node):
    """The names in a part of a parsed expression."""
    if isinstance(node, promql_parser.VectorSelector):
        return {node.name}
    parts = [getattr(node, name, None) for name in ["expr", "lhs", "rhs", "vector_selector"]]
    parts += getattr(node, "args", None) or []
    return set().union(*(selected(part) for part in parts if part is not None))


def check_alerts(path):
    document = yaml.safe_load(path.read_text())
    require(set(document) == {"groups"}, f"{path}: {sorted(document)}")
    names, found = [], set()
    for group in document["groups"]:
        require(set(group) <= {"name", "interval", "rules"}, f"{path}: {sorted(group)}")
        for rule in group["rules"]:
            name = rule["alert"]
            names.append(name)
            require(set(rule) <= {"alert", "expr", "for", "labels", "annotations"}, f"{name}: {sorted(rule)}")
            require(DURATION.fullmatch(rule.get("for", "1m")), f"{name}: {rule.get('for')}")
            require(rule["labels"]["severity"] in {"critical", "warning", "info"}, f"{name}: {rule['labels']}")
            require(set(rule["annotations"]) == {"summary", "description"}, f"{name}: {rule['annotations']}")
            # A label that the expression removes would be empty in the text.
            for text in rule["annotations"].values():
                for label in re.findall(r"\$labels\.(\w+)", text):
                    grouped = re.search(r"\bby\s*\(([^)]*)\)", rule["expr"])
                    kept = grouped is None or label in re.split(r"[,\s]+", grouped.group(1))
                    require(kept, f"{name}: the expression has no label '{label}'")
            found |= metrics(rule["expr"])
    require(len(set(names)) == len(names), f"{path}: {names}")
    return found


def check_dashboard(path):
    dashboard = json.loads(path.read_text())
    for key in ["title", "uid", "schemaVersion", "templating", "panels"]:
        require(key in dashboard, f"{path}: no '{key}'")
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    require(variables == {"datasource", "instance"}, f"{path}: {variables}")
    ids, places, expressions = set(), set(), []
    for panel in dashboard["panels"]:
        title, place = panel["title"], panel["gridPos"]
        ids.add(panel["id"])
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                require(x < 24 and (x, y) not in places, f"{title} overlaps another panel")
                places.add((x, y))
        require(panel["description"].endswith("."), f"{title} has no description")
        require(panel["targets"], f"{title} shows nothing")
        for target in [panel, *panel["targets"]]:
            require(target["datasource"]["uid"] == "${datasource}", f"{title}: {target['datasource']}")
        expressions += [target["expr"] for target in panel["targets"]]
    require(len(ids) == len(dashboard["panels"]), f"{path}: two panels have the same id")
    expressions += [annotation["expr"] for annotation in dashboard["annotations"]["list"]]
    found = {"hob_build_info"}
    for variable in dashboard["templating"]["list"]:
        for name in re.findall(r"label_values\((\w+),", variable.get("definition", "")):
            found.add(name)
    for expression in expressions:
        for name, value in GRAFANA_VARIABLES.items():
            expression = expression.replace(name, value)
        require("$" not in expression, f"an unknown variable: {expression}")
        found |= metrics(expression)
    return found


def main():
    packaging = Path(sys.argv[1])
    alerts = check_alerts(packaging / "prometheus-alerts.yaml")
    dashboard = check_dashboard(packaging / "grafana-dashboard.json")
    print(json.dumps({"alerts": sorted(alerts), "dashboard": sorted(dashboard)}))


main()
