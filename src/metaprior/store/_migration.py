"""Descriptions written by earlier versions of metaprior, brought up to date."""

from typing import Any

# The model that earlier findings compare with, and what its scores were called.
EARLIER_BASELINE = "fitted GP"
FINDINGS = {
    name + after: "baseline" + after
    for name in ("vanilla", "fitted")
    for after in ("", "_log_likelihood")
}
# Settings by the names that they had before.
SETTINGS = {"Weighed": {"plain_weight": "averaged_weight"}}
# Their kernel was always the default one, and not a setting.
WITHOUT_KERNEL = {"FPacohMap", "FPacohVI", "FittedGP", "FixedGP", "LearnedGP", "PacohMap"}


def up_to_date(description: dict[str, Any]) -> dict[str, Any]:
    """A description of any format that is read, as this version of metaprior writes it.

    Format 3 differs from format 2 in checksums and in the name of the arrays, so that whatever else
    format 2 says stays. Findings that name no baseline compare with the fitted GP, and settings may
    have earlier names. Only format 1 may leave the findings out.
    """
    if description["format_version"] == 1:
        description = from_format_1(description)
    return description | {
        "findings": _with_baseline(description["findings"]),
        "method": _with_new_names(description["method"]),
    }


def from_format_1(description: dict[str, Any]) -> dict[str, Any]:
    """A description of format 1 as format 2 writes it.

    Format 2 calls the GP with set hyper-parameters `FixedGP`; a prior without findings has `null`.
    """
    findings = description.get("findings") or None
    method = description.get("method")
    if isinstance(method, dict):
        method = settings_of_format_1(method)
    return description | {"format_version": 2, "method": method, "findings": findings}


def settings_of_format_1(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings that a prior of format 1 was saved with, as format 2 writes them.

    There, `FixedGP` was called `VanillaGP`, switches were the numbers 0 and 1, and methods took no
    kernel.
    """
    changed = dict(settings)
    if changed.get("name") == "VanillaGP":
        changed["name"] = "FixedGP"
    for switch in ("offset", "amplitude", "warp"):
        if changed.get(switch) in (0.0, 1.0):
            changed[switch] = bool(changed[switch])
    if changed.get("name") in WITHOUT_KERNEL:
        changed.setdefault("kernel", None)
    return {
        name: settings_of_format_1(value) if isinstance(value, dict) and "name" in value else value
        for name, value in changed.items()
    }


def _with_new_names(settings: Any) -> Any:
    """The settings of a method and of those inside it, called as they are called now."""
    if not isinstance(settings, dict):
        return settings
    named = SETTINGS.get(str(settings.get("name")), {})
    return {named.get(name, name): _with_new_names(value) for name, value in settings.items()}


def _with_baseline(findings: Any) -> Any:
    """Findings that say which model they compare with."""
    if not isinstance(findings, dict) or "baseline" in findings:
        return findings
    # The points of an example have the user's own names.
    renamed = {
        name: part if name == "examples" else _renamed_keys(part) for name, part in findings.items()
    }
    return renamed | {"baseline": EARLIER_BASELINE}


def _renamed_keys(part: Any) -> Any:
    if isinstance(part, list):
        return [_renamed_keys(each) for each in part]
    if isinstance(part, dict):
        return {FINDINGS.get(key, key): _renamed_keys(value) for key, value in part.items()}
    return part
