"""Reads a page of Prometheus figures from stdin with the official parser, and prints its families as JSON."""

import json
import sys

from prometheus_client.parser import text_string_to_metric_families

families = {}
for family in text_string_to_metric_families(sys.stdin.read()):
    samples = [{"name": s.name, "labels": s.labels, "value": str(s.value)} for s in family.samples]
    assert family.name not in families, f"{family.name} comes twice"
    assert family.documentation, f"{family.name} says nothing of itself"
    families[family.name] = {"type": family.type, "samples": samples}
json.dump(families, sys.stdout)
