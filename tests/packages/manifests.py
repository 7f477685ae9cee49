"""Checks the compose file and the Kubernetes manifests in packaging/, and prints what Hob must understand in them.

    manifests.py PACKAGING

Every document is checked against its schema: that of the Compose specification, and those of the Kubernetes API. What a schema
cannot see is checked here: files that are named exist, labels match, every name in a reference is defined, images have versions. Then one JSON object is
printed with the settings of Hob, the probes, the ports and the environment, which the test compares with Hob itself. Any problem ends
the program with a message. Knows nothing of what Hob accepts.
"""

import json
import sys
from importlib import resources
from pathlib import Path

import jsonschema
import kubernetes_validate
import yaml

# The oldest Kubernetes that gets fixes, and the newest that the package knows.
KUBERNETES_VERSIONS = ["1.33", kubernetes_validate.latest_version()]

KUSTOMIZATION_KEYS = {"apiVersion", "kind", "namespace", "resources", "images"}


def require(condition, message):
    if not condition:
        sys.exit(f"!! {message}")


def require_version(what, image):
    """An image of another project has a version: with 'latest', two starts may run different programs."""
    _, separator, tag = image.rpartition(":")
    require(separator and "/" not in tag and tag != "latest", f"{what}: the image {image} has no version")


def documents(path):
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def kubernetes(folder):
    """All objects of a kustomization, and of those that it includes."""
    [kustomization] = documents(folder / "kustomization.yaml")
    unknown = set(kustomization) - KUSTOMIZATION_KEYS
    require(not unknown, f"{folder}: unknown keys {unknown}")
    found = []
    for name in kustomization["resources"]:
        path = (folder / name).resolve()
        if path.is_dir():
            found += kubernetes(path)
        else:
            found += documents(path)
    # Examples of secrets are not part of a kustomization, because every team has its own.
    listed = {*kustomization["resources"], "kustomization.yaml"}
    for path in folder.glob("*.yaml"):
        require(path.name in listed or path.name.endswith(".example.yaml"), f"{path} is not used")
    return found + [document for path in folder.glob("*.example.yaml") for document in documents(path)]


def check_kubernetes(objects):
    names = {(document["kind"], document["metadata"]["name"]) for document in objects}
    require(len(names) == len(objects), f"two objects have the same name: {sorted(names)}")
    secrets = {d["metadata"]["name"]: set(d["stringData"]) for d in objects if d["kind"] == "Secret"}
    pods = {}
    for document in objects:
        what = f"{document['kind']} {document['metadata']['name']}"
        for version in KUBERNETES_VERSIONS:
            try:
                kubernetes_validate.validate(document, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                sys.exit(f"!! {what}: {error.message} at {list(error.path)} (Kubernetes {version})")
        if document["kind"] in ("Deployment", "StatefulSet"):
            labels = document["spec"]["template"]["metadata"]["labels"]
            selector = document["spec"]["selector"]["matchLabels"]
            require(selector.items() <= labels.items(), f"{what}: its selector does not match its pods")
            pods[document["metadata"]["name"]] = document
            check_pod(what, document, names, secrets)
    for document in objects:
        selector = document.get("spec", {}).get("selector")
        if document["kind"] in ("Service", "PodDisruptionBudget"):
            selector = selector.get("matchLabels", selector)
            chosen = [
                pod for pod in pods.values() if selector.items() <= pod["spec"]["template"]["metadata"]["labels"].items()
            ]
            require(len(chosen) == 1, f"{document['kind']} {document['metadata']['name']} selects {len(chosen)} workloads")
            ports = {port["name"] for port in container(chosen[0])["ports"]}
            for port in document["spec"].get("ports", []):
                require(port["targetPort"] in ports, f"{document['metadata']['name']}: no port {port['targetPort']}")
    return pods


def container(workload):
    [only] = workload["spec"]["template"]["spec"]["containers"]
    return only


def check_pod(what, workload, names, secrets):
    pod = workload["spec"]["template"]["spec"]
    require(pod["securityContext"]["runAsNonRoot"] is True, f"{what} may run as root")
    require(pod["automountServiceAccountToken"] is False, f"{what} has a token of the cluster")
    only = container(workload)
    if workload["metadata"]["name"] != "hob":
        require_version(what, only["image"])
    security = only["securityContext"]
    require(security["readOnlyRootFilesystem"] is True, f"{what}: its file system can be written")
    require(security["allowPrivilegeEscalation"] is False, f"{what} may gain rights")
    require(security["capabilities"] == {"drop": ["ALL"]}, f"{what} has capabilities")
    require("memory" in only["resources"]["limits"], f"{what} has no memory limit")
    volumes = {volume["name"] for volume in pod.get("volumes", [])}
    volumes |= {claim["metadata"]["name"] for claim in workload["spec"].get("volumeClaimTemplates", [])}
    require({mount["name"] for mount in only["volumeMounts"]} == volumes, f"{what}: volumes and mounts differ")
    for volume in pod.get("volumes", []):
        if "configMap" in volume:
            require(("ConfigMap", volume["configMap"]["name"]) in names, f"{what}: no ConfigMap for {volume}")
        if "secret" in volume:
            keys = {item["key"] for item in volume["secret"]["items"]}
            require(keys <= secrets[volume["secret"]["secretName"]], f"{what}: no such keys {keys}")
    for variable in only.get("env", []):
        reference = variable.get("valueFrom", {}).get("secretKeyRef")
        if reference:
            require(reference["key"] in secrets[reference["name"]], f"{what}: no such key {reference}")
    ports = {port["name"] for port in only["ports"]}
    for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
        get = only.get(kind, {}).get("httpGet")
        require(not get or get["port"] in ports, f"{what}: {kind} has no such port")


def kubernetes_facts(objects, pods):
    [settings] = [d["data"]["config.toml"] for d in objects if d["kind"] == "ConfigMap"]
    hob = container(pods["hob"])
    spec = pods["hob"]["spec"]["template"]["spec"]
    [policy] = [d for d in objects if d["kind"] == "NetworkPolicy"]
    services = {d["metadata"]["name"]: d["spec"] for d in objects if d["kind"] == "Service"}
    return {
        "settings": settings,
        "image": hob["image"],
        "command": hob["args"],
        "environment": sorted(variable["name"] for variable in hob["env"]),
        "probes": sorted(hob[kind]["httpGet"]["path"] for kind in ("livenessProbe", "readinessProbe")),
        "ports": sorted({
            hob["ports"][0]["containerPort"],
            services["hob"]["ports"][0]["port"],
            policy["spec"]["ingress"][0]["ports"][0]["port"],
        }),
        "mounts": sorted(mount["mountPath"] for mount in hob["volumeMounts"]),
        "user": spec["securityContext"]["runAsUser"],
        "stop_seconds": spec["terminationGracePeriodSeconds"],
        "engine_port": services["vllm"]["ports"][0]["port"],
        "headless": services["vllm"].get("clusterIP") == "None",
        "replicas": pods["hob"]["spec"]["replicas"],
    }


def compose_facts(packaging):
    path = packaging / "compose.yaml"
    compose = yaml.safe_load(path.read_text())
    schema = json.loads((resources.files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json").read_text())
    errors = sorted(jsonschema.validators.validator_for(schema)(schema).iter_errors(compose), key=str)
    require(not errors, f"{path}: {[(list(error.path), error.message) for error in errors]}")
    services = compose["services"]
    for name, service in services.items():
        if "build" not in service:
            require_version(f"{path}: {name}", service["image"])
        for kind in ("configs", "secrets"):
            used = [entry if isinstance(entry, str) else entry["source"] for entry in service.get(kind, [])]
            require(set(used) <= set(compose[kind]), f"{path}: {name} uses {kind} {used}")
        require(set(service.get("depends_on", [])) <= set(services), f"{path}: {name} depends on what does not exist")
        require(set(service.get("networks", [])) <= set(compose["networks"]), f"{path}: {name} is in no such network")
    for config in compose["configs"].values():
        require((packaging / config["file"]).exists(), f"{path}: there is no {config['file']}")
    hob = services["hob-1"]
    require((packaging / hob["build"]["context"] / hob["build"]["dockerfile"]).exists(), "there is no Containerfile")
    variables = {line.split("=")[0] for line in (packaging / "compose.env.example").read_text().splitlines() if "=" in line}
    secrets = {secret["environment"] for secret in compose["secrets"].values()}
    require(variables == secrets | {"HOB_API_KEY"}, f"compose.env.example has {variables}")
    return {
        "settings": (packaging / compose["configs"]["hob"]["file"]).read_text(),
        "upstreams": sorted(f"{name}" for name in services if name.startswith("hob-")),
        "nginx": (packaging / compose["configs"]["nginx"]["file"]).read_text(),
        "environment": sorted(hob["environment"]),
        "config_file": hob["configs"][0]["target"],
        "stop_seconds": int(hob["stop_grace_period"].removesuffix("s")),
        "engine_command": services["vllm"]["command"],
    }


def check_versions(packaging, pods):
    """Compose and Kubernetes start the same versions."""
    services = yaml.safe_load((packaging / "compose.yaml").read_text())["services"]
    for name in ("postgres", "vllm"):
        images = {services[name]["image"], container(pods[name])["image"]}
        require(len(images) == 1, f"{name} has several versions: {sorted(images)}")


def main():
    packaging = Path(sys.argv[1])
    objects = kubernetes(packaging / "kubernetes" / "example")
    objects += [d for path in (packaging / "kubernetes" / "base").glob("*.example.yaml") for d in documents(path) if d not in objects]
    pods = check_kubernetes(objects)
    check_versions(packaging, pods)
    print(json.dumps({"kubernetes": kubernetes_facts(objects, pods), "compose": compose_facts(packaging)}))


if __name__ == "__main__":
    main()
