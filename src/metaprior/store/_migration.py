"""Descriptions written by earlier versions of metaprior, brought up to date."""

from typing import Any

METHODS = {"VanillaGP": "FixedGP"}
FINDINGS = {"vanilla": "fitted", "vanilla_log_likelihood": "fitted_log_likelihood"}


def from_format_1(description: dict[str, Any]) -> dict[str, Any]:
    """A description of format 1 as format 2 writes it.

    Format 2 calls the GP with set hyper-parameters `FixedGP`, and the one that the findings compare
    with `fitted`; a prior without findings has `null`.
    """
    findings = description.get("findings") or None
    if isinstance(findings, dict):
        # The points of an example have the user's own names.
        findings = {
            name: part if name == "examples" else _renamed_keys(part)
            for name, part in findings.items()
        }
    method = _renamed_methods(description.get("method"))
    return description | {"format_version": 2, "method": method, "findings": findings}


def _renamed_methods(method: Any) -> Any:
    """The description of a method, and of those inside it, by their new names."""
    if not isinstance(method, dict):
        return method
    name = method.get("name")
    inner = {key: _renamed_methods(value) for key, value in method.items()}
    return inner | {"name": METHODS[name]} if name in METHODS else inner


def _renamed_keys(part: Any) -> Any:
    if isinstance(part, list):
        return [_renamed_keys(each) for each in part]
    if isinstance(part, dict):
        return {FINDINGS.get(key, key): _renamed_keys(value) for key, value in part.items()}
    return part
