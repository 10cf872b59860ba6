"""Makes a case that disagrees smaller: leaves out statements as long as it still disagrees."""


def reduced(bench, case, rounds=8, at_once=40):
    """The smallest that was found. Each round tries many cases, each without one part, in one build."""
    for _ in range(rounds):
        candidates = [case.leave_out([part]) for part in case.parts()]
        candidates = sorted({c.text(): c for c in candidates}.values(), key=lambda c: len(c.text()))[:at_once]
        for i, candidate in enumerate(candidates):
            candidate.number = 1000 + i
        verdicts = bench.judge_all(candidates)
        candidates = [c for c in candidates if verdicts[c.number].migrated and not verdicts[c.number].announced]
        if not candidates:
            return case
        wrong, _ = bench.check(candidates, verdicts)
        good = [c for c in candidates if c.number in wrong]
        if not good:
            return case
        # What may go alone may mostly go together.
        together = case
        for c in good:
            together = type(case)(case.number, case.helpers, case.body, together.without | c.without)
        together.number = 999
        verdicts = bench.judge_all([together])
        if verdicts[999].migrated and not verdicts[999].announced and 999 in bench.check([together], verdicts)[0]:
            good = [together]
        number = case.number
        case = min(good, key=lambda c: len(c.text()))
        case.number = number
    return case
