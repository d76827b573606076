# SPDX-License-Identifier: MIT
"""Read the output of slice.c in a guest: sum rounds, and print a table."""
import re

LINE = re.compile(r"SLICE (\w+) work (\d+) ext (\d+) periods (\d+) met (\d+) preempted (\d+) grants (\d+) yields (\d+) sections (\d+) "
                  r"p50 (\d+) p90 (\d+) max (\d+)")
COSTS = ("none", "request", "standing", "outline")
COST = re.compile("COST " + " ".join(name + r" ([\d.]+)" for name in COSTS))
WAYS = ("none", "request", "standing")
LENGTHS = 3
EXTENSIONS = 2
ROUNDS = 3


class Sum:
    def __init__(self):
        self.periods = self.met = self.preempted = self.grants = self.yields = self.sections = 0
        self.p50, self.p90 = [], []

    def add(self, numbers):
        periods, met, preempted, grants, yields, sections, p50, p90, _ = numbers
        self.periods += periods
        self.met += met
        self.preempted += preempted
        self.grants += grants
        self.yields += yields
        self.sections += sections
        self.p50.append(p50)
        self.p90.append(p90)

    def share_met(self):
        return self.met / max(self.periods, 1)


def summarise(text):
    """By length of the extension, work in a section, and way."""
    sums = {}
    for way, work, ext, *numbers in LINE.findall(text):
        sums.setdefault((int(ext), int(work), way), Sum()).add([int(n) for n in numbers])
    return dict(sorted(sums.items(), key=lambda item: (item[0][0], item[0][1], WAYS.index(item[0][2]))))


def whole(text):
    return len(LINE.findall(text)) == len(WAYS) * LENGTHS * EXTENSIONS * ROUNDS


def table(sums):
    lines = [f"  {'extension, work, request':34} {'waits':>6} {'met':>6} {'of waits':>8} {'preempted':>9} {'grants':>7} {'yields':>7} "
             f"{'M sections':>10} {'p50, us':>9} {'p90, us':>9}"]
    for (ext, work, way), s in sums.items():
        lines.append(f"  {f'{ext // 1000} us, {work}, {way}':34} {s.periods:6} {s.met:6} {s.share_met():8.0%} {s.preempted:9} "
                     f"{s.grants:7} {s.yields:7} {s.sections / 1e6:10.2f} {sorted(s.p50)[len(s.p50) // 2] / 1e3:9.0f} "
                     f"{sorted(s.p90)[len(s.p90) // 2] / 1e3:9.0f}")
    return "\n".join(lines)


def costs(text):
    """Return the medians of the time of an empty section, by way."""
    columns = list(zip(*([float(v) for v in line] for line in COST.findall(text))))
    return {way: sorted(column)[len(column) // 2] for way, column in zip(COSTS, columns)}
