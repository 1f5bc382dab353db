"""The lifelong study: does a method get better from run to run, and what did it cost on the way?

Columns of the records: `sequence`, `seed`, `run`, `step`, `simple_regret`, `inference_regret`;
runs and steps are counted from 1.
"""

from matplotlib.figure import Figure

from metaprior.lab.plots._estimates import (
    by_environment,
    by_method,
    compare_with_others,
    curve,
    estimate,
    measured,
)
from metaprior.lab.plots._looks import looks_of, title_of
from metaprior.lab.plots._method_tables import (
    column_of,
    columns_by_environment,
    comparison_summary,
    comparison_table,
    method_table,
)
from metaprior.lab.plots._report import StudyReport, require_columns
from metaprior.lab.plots._study_figure import (
    draw_curves,
    draw_log_regret,
    label_outer,
    mark_every,
    panels,
)
from metaprior.lab.plots._tables import MISSING, Estimate, ResultTable
from metaprior.lab.studies import DataFrame, StudyResults
from metaprior.metrics import cumulative_regret

SAMPLES = ("sequence", "seed")
LIFE = ("environment", "method", *SAMPLES)
CUMULATIVE, TOTAL_STEP = "cumulative_inference_regret", "total_step"
NOTE = "Mean over sequences and seeds ± half of the 95 % interval; the lowest mean in bold."


def lifelong_report(results: StudyResults) -> StudyReport:
    """Simple regret at the end of each run, and cumulative inference regret over all steps."""
    require_columns(results, {*SAMPLES, "run", "step", "simple_regret", "inference_regret"})
    rows, report = results.records, StudyReport({}, {}, {})
    ends = _last(rows, "step", [*LIFE, "run"])
    _report_ends(report, ends)
    _compare(report, _last(ends, "run", ["environment"]), "simple_regret", "regret of the last run")
    known = measured(rows, "inference_regret")
    if len(known):
        summed = accumulated(known)
        totals = _last(summed, TOTAL_STEP, list(LIFE))
        _report_totals(report, summed, totals)
        _compare(report, totals, CUMULATIVE, "cumulative inference regret")
    return report


def accumulated(rows: DataFrame) -> DataFrame:
    """Rows in order, with the inference regret summed over all steps of all runs so far."""
    rows = rows.sort_values([*LIFE, "run", "step"])
    lives = rows.groupby(list(LIFE), sort=False)
    return rows.assign(
        **{
            CUMULATIVE: lives["inference_regret"].transform(cumulative_regret),
            TOTAL_STEP: lives.cumcount() + 1,
        }
    )


def end_of_run_figure(rows: DataFrame) -> Figure:
    """Simple regret at the last step of each run."""
    looks, environments = looks_of(rows["method"]), by_environment(rows)
    figure, axes = panels([title_of(name) for name in environments], looks)
    for ax, group in zip(axes, environments.values(), strict=True):
        methods = by_method(group)
        curves = {name: curve(each, "run", "simple_regret") for name, each in methods.items()}
        draw_log_regret(ax, curves, looks)
    label_outer(axes, "run", "simple regret at the end")
    return figure


def cumulative_figure(rows: DataFrame) -> Figure:
    """Sums over all steps so far; thin lines where one run ends and the next begins."""
    looks, environments = looks_of(rows["method"]), by_environment(rows)
    figure, axes = panels([title_of(name) for name in environments], looks)
    for ax, group in zip(axes, environments.values(), strict=True):
        methods = by_method(group)
        curves = {name: curve(each, TOTAL_STEP, CUMULATIVE) for name, each in methods.items()}
        draw_curves(ax, curves, looks)
        ax.set_ylim(bottom=0)
        starts = group.loc[group["step"] == group["step"].min(), TOTAL_STEP].unique()
        mark_every(ax, [start - 0.5 for start in sorted(starts)[1:]])
    label_outer(axes, "step, all runs in a row", "cumul. inference regret")
    return figure


def _report_ends(report: StudyReport, ends: DataFrame) -> None:
    report.figures["end-of-run-regret"] = end_of_run_figure(ends)
    groups = by_environment(ends)
    report.tables["end-of-run-regret"] = [_ends_table(*item) for item in groups.items()]
    report.summary["end_of_run_regret"] = {
        environment: {
            name: {
                "runs": {int(run): estimate(r) for run, r in each.groupby("run")["simple_regret"]},
                "first_minus_last": _gain(each),
            }
            for name, each in by_method(group).items()
        }
        for environment, group in groups.items()
    }


def _report_totals(report: StudyReport, summed: DataFrame, totals: DataFrame) -> None:
    name = CUMULATIVE.replace("_", "-")
    columns = columns_by_environment(totals, CUMULATIVE)
    titled = {title_of(environment): column for environment, column in columns.items()}
    report.figures[name] = cumulative_figure(summed)
    report.tables[name] = [
        method_table("Cumulative inference regret of all runs", name, titled, "lower", NOTE)
    ]
    report.summary[CUMULATIVE] = columns


def _compare(report: StudyReport, rows: DataFrame, value: str, words: str) -> None:
    if found := compare_with_others(rows, value, SAMPLES, "lower"):
        name = f"{value.replace('_', '-')}-comparison"
        report.tables[name] = [comparison_table(found, words, name)]
        report.summary[f"comparison_of_{value}"] = comparison_summary(found)


def _last(rows: DataFrame, column: str, group: list[str]) -> DataFrame:
    """In each group, the rows with the largest number in `column`."""
    return rows[rows[column] == rows.groupby(group)[column].transform("max")]


def _ends_table(environment: str, rows: DataFrame) -> ResultTable:
    """The first run, one in the middle and the last, and by how much the last was better."""
    runs = sorted({int(run) for run in rows["run"]})
    shown = sorted({runs[0], runs[len(runs) // 2], runs[-1]})
    columns = {f"run {run}": column_of(rows[rows["run"] == run], "simple_regret") for run in shown}
    table = method_table(
        f"Simple regret at the end of a run on {title_of(environment)}",
        f"end-of-run-regret-{environment.lower()}",
        columns,
        "lower",
        NOTE,
    )
    gains = [_gain(each) or MISSING for each in by_method(rows).values()]
    return table._replace(
        header=[*table.header, "first minus last"],
        rows=[[*row, gain] for row, gain in zip(table.rows, gains, strict=True)],
    )


def _gain(rows: DataFrame) -> Estimate | None:
    """How much lower the last run ended than the first, sequence by sequence."""
    first, last = rows["run"].min(), rows["run"].max()
    pairs = rows[rows["run"] == first].merge(rows[rows["run"] == last], on=list(SAMPLES))
    if first == last or pairs.empty:
        return None
    return estimate(pairs["simple_regret_x"] - pairs["simple_regret_y"])
