//! The documentation of the tables, generated from the lists of columns.

use crate::column::{CellKind, Column, Row};
use crate::quantity::DISTRIBUTED_QUANTITIES;
use crate::rows::{DistributionRow, FlowRow, PointRow, QueueRow, QueueSeriesRow, SeriesRow, TimingRow};
use crate::version::SCHEMA_VERSION;
use std::fmt::Write as _;

const HEAD: &str = "# Results

Every experiment writes a folder with one Parquet file for each table and a `summary.json`. Any program that reads Parquet
can read the tables:

```python
import pandas
flows = pandas.read_parquet(\"results/audio/flows.parquet\")
flows[flows.group == \"audio\"].groupby(\"hint\").q.mean()
```

```sql
-- duckdb
select p.number as hint, avg(f.q) from 'results/audio/flows.parquet' f
join 'results/audio/points.parquet' p using (point)
where p.key = 'flow.audio.hint' and f.\"group\" = 'audio' group by 1 order by 1;
```

[`cutline.open`](python.md#results) reads them in Python, with means and comparisons.

The unit of a column is the last word of its name. It is also in the file's metadata as `unit.NAME`. Values are measured
between `warm-up` and `measure-until`. Null means that there was nothing to measure. `point` is the label of the sweep's
point, and `run` identifies point and seed together; both join the tables. `cutline compare` and `cutline run` compute means
over flows and seeds of the columns that are marked as measures. The same scenario, seeds and version give the same bytes
with any number of threads.

`summary.json` contains the text of the scenario, the overrides of the command line, the version, the seeds, the points with
their settings, the runs that finished, the runs that failed with their errors, the machine, and the times of start and end.

## Delays of flows and queues

`queuing_*` of a flow is the time that its packets waited on their whole path. It includes the access
links before and behind the bottleneck, which matter when many packets leave a host at once. The wait at one queue alone is in `queues.parquet`: `delay_*` of the row
with that link, such as `r1->r2`, over all packets of all flows. `one_way_*` contains queuing, transmission and propagation.

Percentiles of a flow are those of its own packets as long as its scenario keeps a distribution for each flow
(`distributions = \"flow\"`). With `distributions = \"group\"` there is one for the whole group, and every flow of it shows the percentiles of
the group; its mean is its own in any case. A mean of percentiles over flows is not a percentile: for a group as a whole, `cutline run --json`
has `groups`, with the percentiles of all packets of all its flows.

A bucket of a distribution counts up to 4,294,967,295 values. If one is full, `cutline run` warns that the percentiles of its distribution are wrong.
Shorten the measured time then.

## The origin of results

`origin` in `summary.json` identifies the results by the scenario after `--set`, the seeds, the version of Cutline and the
version of the tables. Results of another origin are replaced only with `--force`. If a folder has results already:

| stored results | without an option | `--resume` | `--force` |
| --- | --- | --- | --- |
| the same origin, simulated | simulated again; the old rows are kept until the new ones are complete | only the missing runs are simulated | replaced |
| the same origin, measured in the laboratory | refused | runs that are missing or whose timing is not valid are measured | replaced |
| some of the new runs (fewer seeds, for example) | refused | the missing runs are added | replaced |
| anything else | refused | refused | replaced |

While an experiment runs, each finished run has a folder `runs/RUN/` with the same tables, from which `--resume` continues.
When all runs are stored, they are joined to the tables, and `runs` is removed.

One process at a time stores results in a folder: it has a lock on the file `.lock`. A second one ends at once with a message that
names the first. A killed process holds no lock, so the file that it leaves blocks no program. All tables are stored together: a
program that is killed at that time leaves the earlier tables or the new ones. `cutline reproduce` takes the locks of all its folders
before the first run.

## Damage

`summary.json` has the SHA-256 digest of every table (`files`) and its own digest (`digest`). If a file has changed since it was
stored, `cutline compare`, `report` and `reproduce` fail with an error that names the file. `--resume` of the command that stored the file repairs this:

| damaged | effect of `--resume` |
| --- | --- |
| a file in `runs/RUN/`, whose digests are in `digests.json` beside it | the run is made again |
| a table, or it is missing | all runs that have no folder in `runs` are made again; measurements of the laboratory are measured again |
| `summary.json`, and `origin` in it is intact | the summary is written again |
| `summary.json`, and it cannot be read, or `origin` in it differs from the requested one | nothing; `--force` replaces everything |

A file without a digest counts as damaged.
";

/// Returns the page `docs/guide/results.md`.
pub fn schema_page() -> String {
    let mut page = format!(
        "{HEAD}\n## Tables\n\nThis is version {SCHEMA_VERSION} of the tables (`cutline.schema` in each file).\n"
    );
    table::<FlowRow>(&mut page);
    table::<QueueRow>(&mut page);
    table::<SeriesRow>(&mut page);
    table::<QueueSeriesRow>(&mut page);
    table::<DistributionRow>(&mut page);
    quantities(&mut page);
    table::<TimingRow>(&mut page);
    table::<PointRow>(&mut page);
    page
}

fn table<R: Row>(page: &mut String) {
    let _ = write!(page, "\n## {}\n\nOne row per {}.\n\n", R::FILE, R::ONE_PER);
    let _ = writeln!(page, "| column | type | unit | measure | meaning |\n| --- | --- | --- | --- | --- |");
    for column in R::columns() {
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} | {} |",
            column.about.name,
            type_of(&column),
            column.about.unit,
            if column.measure { "yes" } else { "" },
            column.about.meaning
        );
    }
}

/// Adds the quantities of distributions.
fn quantities(page: &mut String) {
    *page += "\nThe quantities, whose means `cutline compare --measure` compares, too:\n\n";
    *page += "| quantity | unit | meaning |\n| --- | --- | --- |\n";
    for about in DISTRIBUTED_QUANTITIES {
        let _ = writeln!(page, "| `{}` | {} | {} |", about.name, about.unit, about.meaning);
    }
}

fn type_of<R>(column: &Column<R>) -> String {
    let name = match column.kind {
        CellKind::Text => "text",
        CellKind::Count | CellKind::Flag => "int64",
        CellKind::Real => "double",
    };
    if column.optional { format!("{name} or null") } else { name.to_owned() }
}
