"""What eq. 3.4 can give several operators together."""


def sums_possible(operators: int, target: int = 10) -> tuple[int, int]:
    """The least and the greatest sum of `I_op` that eq. 3.4 can give so many operators.

    Shares sum to `target`; each is rounded up by less than 1, or from 0 to 1, and one of them at least is above 0. Of
    four operators and ten it is 10 to 13.
    """
    return max(target, operators), target + operators - 1
