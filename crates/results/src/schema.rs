//! The tables' documentation, written from the same lists of columns that the files are written from.

use crate::column::{CellKind, Column, Row};
use crate::rows::{DistributionRow, FlowRow, PointRow, QueueRow, QueueSeriesRow, SeriesRow, TimingRow};
use crate::version::SCHEMA_VERSION;
use std::fmt::Write as _;

const HEAD: &str = "# Results

Every experiment leaves a folder with one Parquet file for each table and a `summary.json`. Read them with anything that
reads Parquet:

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

A column's unit is the last word of its name; it is also in the file's metadata as `unit.NAME`. Everything is measured
between `warm-up` and `measure-until`. Null means that there was nothing to measure. `point` is the label of the
sweep's point, `run` identifies point and seed together; both join the tables. Columns that are marked as measures are those
of which `cutline compare` and `cutline run` take means over flows and seeds. The same scenario, seeds and version
give the same bytes, whatever the number of threads.

`summary.json` holds the scenario's text, what the command line changed, version, seeds, points with their settings, the
runs that finished, those that failed and why, the machine, and the times of beginning and end.

## What made the results

`origin` in `summary.json` identifies what made the results: the scenario after `--set`, the seeds, the version of Cutline
and that of the tables. Results of another origin are never replaced unasked. What happens if a folder holds results already:

| there | without an option | `--resume` | `--force` |
| --- | --- | --- | --- |
| the same origin, simulated | simulated again; the old rows stay until the new ones are complete | only what is missing is simulated | replaced |
| the same origin, measured in the laboratory | refused | runs that are missing or whose timing is not valid are measured | replaced |
| some of the runs that are asked for (fewer seeds, for example) | refused | the missing runs are added | replaced |
| anything else | refused | refused | replaced |

While an experiment runs, each finished run is a folder `runs/RUN/` with the same tables; `--resume` goes on from
there. When all runs are stored, the tables hold them and `runs` is removed.

One process at a time stores results in a folder: it has a lock on the file `.lock`. A second one ends at once with a message that
names the first. A process that was killed has no lock any more, and a `.lock` that it left blocks nobody. The tables are
stored all together: a program that is killed meanwhile leaves the earlier ones or the new ones.

## Damage

`summary.json` has the SHA-256 digest of every table (`files`), and its own (`digest`). A file that is not what was stored is an
error of `cutline compare`, `report` and `reproduce` that names the file. What to do:

| damaged | what `--resume` of the command that stored it does |
| --- | --- |
| a file in `runs/RUN/`, whose digests are in `digests.json` beside it | it makes that run again |
| a table, or it is missing | it makes all runs again that have no folder in `runs`; measurements of the laboratory are measured again |
| `summary.json`, and `origin` in it is intact | it writes it again |
| `summary.json`, and it cannot be read, or `origin` in it is not what is asked for | nothing; `--force` replaces everything |

Earlier versions stored no digests. Their results stay readable, but only damage that makes a file unreadable is noticed. They
get digests when `--resume` adds runs. To change `summary.json` by hand, remove `files` and `digest` from it.
";

/// The page `docs/guide/results.md`.
pub fn schema_page() -> String {
    let mut page = format!(
        "{HEAD}\n## Tables\n\nThis is version {SCHEMA_VERSION} of the tables (`cutline.schema` in each file).\n"
    );
    table::<FlowRow>(&mut page);
    table::<QueueRow>(&mut page);
    table::<SeriesRow>(&mut page);
    table::<QueueSeriesRow>(&mut page);
    table::<DistributionRow>(&mut page);
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
            column.name,
            type_of(&column),
            column.unit,
            if column.measure { "yes" } else { "" },
            column.meaning
        );
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
