"""What a verdict says against the system, on whatever machine a test runs."""

from streamgauge.results.verdict import Verdict


def sentence_against(verdict: Verdict, name: str) -> str:
    """That of a check which has failed. On a starved machine the driver may be invalid besides, which outranks all that
    speaks against the system; else this check is among those that decided.
    """
    found = next(check for check in verdict.checks if check.name == name)
    assert found.state == "failed", found.sentence
    assert verdict.value in ("not_sustained", "invalid"), verdict.sentence
    if verdict.value == "not_sustained":
        assert name in verdict.decided_by
        assert name != verdict.decided_by[0] or found.sentence in verdict.sentence
    return found.sentence
