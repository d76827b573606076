# SPDX-License-Identifier: MIT
"""The page: one HTML file that needs nothing else, and each picture as PNG and SVG beside it."""
import pathlib
import re

import jinja2
from matplotlib import pyplot as plt

import plots
from headline import faster, headline

HERE = pathlib.Path(__file__).resolve().parent
SECTIONS = {
    "reads": ("What readers pay", "CPU time of one section: enter, load a pointer, load a field behind it, leave. Types of this library in teal, "
                                  "peers in orange, bare loads in grey."),
    "waits": ("How long updaters wait", "shazptr and hazptr wait for the readers of one object; rcu, rcu_expedited, liburcu and ck_epoch for all readers "
                                        "that are inside. Where readers hold what is waited for, every type waits for them."),
    "retires": ("Deferred frees", "Objects are allocated, retired and freed by two threads. Types that keep little garbage pay for it by more frequent scans."),
    "tables": ("Hash tables", "Lookups by all threads together. A figure of 2003 on four CPUs made people adopt RCU: locks in each bucket had half of the "
                              "ideal rate."),
    "bursts": ("Bursts of writers", "gp and expedited are this library's percpu_rwsem without rcu_sync. A lock that prefers readers starves writers beside busy "
                                    "ones, and one that prefers writers wins here."),
}


def study_sections(document):
    """Yield the title and the texts of each case."""
    for case in document["cases"]:
        said = f" Published: {case['document']}." if case["document"] else ""
        yield case["name"], (f"Case study: {case['name']}", f"{case['what'][0].upper()}{case['what'][1:]}.{said}", case["honesty"])


def slug(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60]


def draw(document, directory):
    """Writes the files of all pictures; returns [(title, caption, svg for the page)] by section."""
    sections, number = {}, 0
    for section, title, caption, figure in plots.all_plots(document):
        number += 1
        name = f"{number:02}-{section}-{slug(title)}"
        figure.savefig(directory / f"{name}.png", dpi=150, facecolor="white")
        svg = plots.svg_of(figure)
        plt.close(figure)
        (directory / f"{name}.svg").write_text(svg, encoding="utf-8")
        sections.setdefault(section, []).append((title, caption, plots.themed(svg, f"p{number}")))
    return sections


def columns_of(part):
    """Return the columns of the table of figures that follows the pictures."""
    if part == "study":
        return ["case", "scenario", "variant", "fence", "metric", "median", "min", "max", "n"]
    extra = {"retires": ["garbage"], "tables": ["keys"], "bursts": ["section_us", "grace_periods", "wait_us"]}.get(part, [])
    return ["scenario", "type", "fence", "threads", *extra, "unit", "p50", "min", "max", "spread", "n"]


def shown(value):
    if value is None:
        return "-"
    return plots.short(value) if isinstance(value, float) else str(value)


def write(document, directory):
    """Writes the page and its pictures; returns the number of pictures."""
    directory = pathlib.Path(directory)
    pictures = draw(document, directory)
    texts = {**SECTIONS, **dict(study_sections(document))}
    shapes = document["parts"].get("study", {}).get("shapes", [])
    sections = [{"id": slug(name), "title": texts[name][0], "text": texts[name][1], "honesty": texts[name][2:], "pictures": made,
                 "shapes": [s for s in shapes if s["case"] == name]} for name, made in pictures.items()]
    tables = [{"name": name, "command": part["command"], "seconds": part["seconds"], "columns": columns_of(name),
               "rows": part["rows"]} for name, part in document["parts"].items()]
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["shown"] = shown
    template = environment.from_string((HERE / "page.html").read_text(encoding="utf-8"))
    page = template.render(document=document, headline=headline(document), faster=faster(document), sections=sections, tables=tables)
    (directory / "index.html").write_text(page, encoding="utf-8")
    return sum(len(s["pictures"]) for s in sections)
