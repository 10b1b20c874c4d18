//! Transfers that arrive at random between the hosts of a network, and their drawing.

use super::{GraphSpec, Scenario};
use cutline_units::{Distribution, Duration, Streams};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Transfers that arrive as a Poisson process.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrivalsSpec {
    /// Mean number of transfers each second, in the whole network.
    pub per_second: f64,
    /// The load from which `per_second` was computed, 0..1; `None` if the rate was given.
    pub load: Option<f64>,
    /// Time from which transfers arrive.
    pub from: Duration,
    /// Time until which transfers arrive.
    pub until: Duration,
    /// Source and sink of the transfers.
    pub matrix: TrafficMatrix,
    /// Sizes of the transfers, B.
    pub sizes: TransferSizes,
}

/// The choice of source and sink.
#[derive(Clone, Debug, PartialEq)]
pub enum TrafficMatrix {
    /// Every ordered pair of different hosts is equally likely.
    AllToAll(Arc<[String]>),
    /// Every host sends to one other host and receives from one, drawn for each seed.
    Permutation(Arc<[String]>),
    /// Pairs with their shares of the transfers, as cumulative shares that end with 1.
    Pairs(Arc<[PairShare]>),
    /// The demands of the graph's file.
    Demands(Arc<Demands>),
}

/// Demands between the nodes of a graph in a file. Each host of a node is equally likely to send or receive the node's transfers.
#[derive(Clone, Debug, PartialEq)]
pub struct Demands {
    /// The hosts at each node of the file; the node itself if it has none.
    pub hosts: Vec<Vec<String>>,
    /// Weights above 0 by source and sink, which are indices of `hosts`; at least one.
    pub weights: BTreeMap<[usize; 2], f64>,
}

/// A pair of nodes and its share of the transfers.
#[derive(Clone, Debug, PartialEq)]
pub struct PairShare {
    /// The source.
    pub from: String,
    /// The sink.
    pub to: String,
    /// The share of the transfers of this pair and of those before it, 0..1.
    pub cumulative: f64,
}

/// The distribution of sizes, B.
#[derive(Clone, Debug, PartialEq)]
pub enum TransferSizes {
    /// A distribution by its parameters.
    Distribution(Distribution),
    /// A measured distribution.
    Empirical(Arc<SizeTable>),
}

/// A cumulative distribution of sizes by points, linear between them.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeTable(Vec<SizePoint>);

/// A point of a distribution: so many bytes or fewer have this share of the transfers.
#[derive(Clone, Copy, Debug, PartialEq)]
struct SizePoint {
    bytes: f64,
    share: f64,
}

/// The largest size in a table, B.
const LARGEST: f64 = 1e15;

/// A transfer of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawnTransfer {
    /// Its name: that of the group and a number from 1.
    pub name: String,
    /// The group's index in [`Scenario::flows`].
    pub group: usize,
    /// The source.
    pub from: String,
    /// The sink.
    pub to: String,
    /// The time of its start.
    pub start: Duration,
    /// Its size, at least 1 B.
    pub bytes: u64,
}

impl SizeTable {
    /// Reads a table. Each line has a size in bytes and the share of the transfers that are not larger; the shares end with 1, or with
    /// 100 if they are percentages. A line that begins with `#` is a comment.
    ///
    /// # Errors
    /// A message that names the line and its fault.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut points: Vec<SizePoint> = Vec::new();
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| is_content(line)) {
            let wrong = |why: String| format!("line {number}: {why}");
            let fields: Vec<&str> = fields(line).collect();
            let [bytes, share] = fields[..] else {
                return Err(wrong(format!("{:?} is not a size and a share", line.trim())));
            };
            let parse = |what, text: &str, most: f64| {
                let value = text.parse::<f64>().ok().filter(|value| (0.0..=most).contains(value));
                value.ok_or_else(|| wrong(format!("{text:?} is no {what} from 0 to {most}")))
            };
            let point = SizePoint {
                bytes: parse("size in bytes", bytes, LARGEST)?,
                share: parse("share", share, 100.0)?,
            };
            if let Some(last) = points.last() {
                if point.share < last.share {
                    return Err(wrong(format!(
                        "the share {} is below {}, that of the line before",
                        point.share, last.share
                    )));
                }
                if point.bytes < last.bytes {
                    return Err(wrong(format!(
                        "the size {} B is below {} B, that of the line before",
                        point.bytes, last.bytes
                    )));
                }
            }
            points.push(point);
        }
        let Some(last) = points.last().copied() else { return Err("it has no sizes".to_owned()) };
        let whole = [1.0, 100.0].into_iter().find(|whole| (last.share - whole).abs() <= 1e-9 * whole);
        let whole = whole.ok_or_else(|| {
            format!("the last share is {}; it must be 1, or 100 if the shares are percentages", last.share)
        })?;
        if last.bytes < 1.0 {
            return Err("all sizes are below 1 B".to_owned());
        }
        for point in &mut points {
            point.share = (point.share / whole).min(1.0);
        }
        Ok(Self(points))
    }

    /// Returns the mean size, B. The share of the first point has its size.
    pub fn mean(&self) -> f64 {
        let first = self.0[0].share * self.0[0].bytes;
        let between =
            |two: &[SizePoint]| (two[1].share - two[0].share) * f64::midpoint(two[0].bytes, two[1].bytes);
        first + self.0.windows(2).map(between).sum::<f64>()
    }

    /// Returns the size below which a share of the transfers is, B.
    fn quantile(&self, share: f64) -> f64 {
        let above = self.0.partition_point(|point| point.share < share).min(self.0.len() - 1);
        let upper = self.0[above];
        let Some(lower) = above.checked_sub(1).map(|below| self.0[below]) else { return upper.bytes };
        let part = (share - lower.share) / (upper.share - lower.share);
        lower.bytes + part.clamp(0.0, 1.0) * (upper.bytes - lower.bytes)
    }

    /// Returns all numbers of the table, for its digest.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = f64> + '_ {
        self.0.iter().flat_map(|point| [point.bytes, point.share])
    }
}

impl TransferSizes {
    /// Returns the mean size, B; infinite for some distributions.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Distribution(distribution) => distribution.mean(),
            Self::Empirical(table) => table.mean(),
        }
    }

    fn draw(&self, random: &mut cutline_units::RandomStream) -> u64 {
        let bytes = match self {
            Self::Distribution(distribution) => distribution.sample(random),
            Self::Empirical(table) => table.quantile(random.uniform()),
        };
        (bytes.round() as u64).max(1)
    }
}

/// Returns whether a line of a table is neither empty nor a comment.
fn is_content(line: &str) -> bool {
    !line.trim().is_empty() && !line.trim_start().starts_with('#')
}

/// Returns the fields of a line, which blanks or commas separate.
fn fields(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| c == ',' || c.is_whitespace()).filter(|field| !field.is_empty())
}

impl TrafficMatrix {
    /// Reads pairs of nodes with their weights from a table. Each line has a source, a sink and a weight of at least 0. A line that
    /// begins with `#` is a comment.
    ///
    /// # Errors
    /// A message that names the line and its fault.
    pub fn parse(text: &str, graph: &GraphSpec) -> Result<Self, String> {
        let nodes: BTreeSet<&str> = graph.nodes.iter().map(|node| node.name.as_str()).collect();
        let mut demands = Vec::new();
        let mut taken = BTreeSet::new();
        let mut sum = 0.0;
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| is_content(line)) {
            let wrong = |why: String| format!("line {number}: {why}");
            let fields: Vec<&str> = fields(line).collect();
            let [from, to, weight] = fields[..] else {
                return Err(wrong(format!("{:?} is not a source, a sink and a weight", line.trim())));
            };
            if let Some(unknown) = [from, to].into_iter().find(|node| !nodes.contains(node)) {
                return Err(wrong(format!("there is no node {unknown:?}")));
            }
            if from == to {
                return Err(wrong(format!(
                    "a transfer goes from one node to another, and both are {from:?}"
                )));
            }
            if !taken.insert((from, to)) {
                return Err(wrong(format!("another line has the pair {from:?} and {to:?}")));
            }
            let weight = weight.parse::<f64>().ok().filter(|weight| (0.0..=1e15).contains(weight));
            let weight =
                weight.ok_or_else(|| wrong(format!("{:?} is no weight from 0 to 1e15", fields[2])))?;
            sum += weight;
            if weight > 0.0 {
                demands.push(PairShare { from: from.to_owned(), to: to.to_owned(), cumulative: sum });
            }
        }
        if demands.is_empty() {
            return Err("it has no pair with a weight above 0".to_owned());
        }
        for demand in &mut demands {
            demand.cumulative /= sum;
        }
        Ok(Self::Pairs(demands.into()))
    }

    /// Returns the share of the transfers that each node sends, and that it receives.
    pub fn shares(&self) -> BTreeMap<&str, [f64; 2]> {
        match self {
            Self::AllToAll(hosts) | Self::Permutation(hosts) => {
                hosts.iter().map(|host| (host.as_str(), [1.0 / hosts.len() as f64; 2])).collect()
            }
            Self::Pairs(demands) => {
                let mut shares: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
                let mut before = 0.0;
                for PairShare { from, to, cumulative } in demands.iter() {
                    shares.entry(from).or_default()[0] += cumulative - before;
                    shares.entry(to).or_default()[1] += cumulative - before;
                    before = *cumulative;
                }
                shares
            }
            Self::Demands(demands) => demands.shares(),
        }
    }
}

impl Demands {
    /// Returns the demands with half of each one in either direction.
    pub fn symmetric(&self) -> Self {
        let mut weights = BTreeMap::new();
        for ([from, to], weight) in &self.weights {
            for ends in [[*from, *to], [*to, *from]] {
                *weights.entry(ends).or_insert(0.0) += weight / 2.0;
            }
        }
        Self { hosts: self.hosts.clone(), weights }
    }

    /// Returns the share of the transfers that each host sends, and that it receives.
    fn shares(&self) -> BTreeMap<&str, [f64; 2]> {
        let sum: f64 = self.weights.values().sum();
        let mut of_nodes = vec![[0.0; 2]; self.hosts.len()];
        for ([from, to], weight) in &self.weights {
            of_nodes[*from][0] += weight / sum;
            of_nodes[*to][1] += weight / sum;
        }
        let of_hosts = self.hosts.iter().zip(of_nodes).flat_map(|(hosts, shares)| {
            let each = shares.map(|share| share / hosts.len() as f64);
            hosts.iter().map(move |host| (host.as_str(), each))
        });
        of_hosts.collect()
    }
}

/// Draws pairs of a matrix in a run.
enum Pairing<'a> {
    AllToAll(&'a [String]),
    /// The hosts in a random cycle, in which each one sends to the next.
    Cycle(Vec<&'a str>),
    Pairs(&'a [PairShare]),
    /// The hosts of each node, and pairs of nodes with cumulative shares.
    Nodes(&'a [Vec<String>], Vec<([usize; 2], f64)>),
}

impl<'a> Pairing<'a> {
    fn new(matrix: &'a TrafficMatrix, random: &mut cutline_units::RandomStream) -> Self {
        match matrix {
            TrafficMatrix::AllToAll(hosts) => Self::AllToAll(hosts),
            TrafficMatrix::Pairs(demands) => Self::Pairs(demands),
            TrafficMatrix::Demands(demands) => {
                let sum: f64 = demands.weights.values().sum();
                let mut passed = 0.0;
                let cumulative = |(ends, weight): (&[usize; 2], &f64)| {
                    passed += weight;
                    (*ends, passed / sum)
                };
                Self::Nodes(&demands.hosts, demands.weights.iter().map(cumulative).collect())
            }
            TrafficMatrix::Permutation(hosts) => {
                let mut cycle: Vec<&str> = hosts.iter().map(String::as_str).collect();
                // Fisher and Yates.
                for end in (1..cycle.len()).rev() {
                    cycle.swap(end, below(end + 1, random));
                }
                Self::Cycle(cycle)
            }
        }
    }

    fn draw(&self, random: &mut cutline_units::RandomStream) -> [&'a str; 2] {
        match self {
            Self::AllToAll(hosts) => {
                let from = below(hosts.len(), random);
                let to = below(hosts.len() - 1, random);
                [&hosts[from], &hosts[if to < from { to } else { to + 1 }]]
            }
            Self::Cycle(cycle) => {
                let from = below(cycle.len(), random);
                [cycle[from], cycle[(from + 1) % cycle.len()]]
            }
            Self::Pairs(demands) => {
                let drawn = random.uniform();
                let index = demands.partition_point(|demand| demand.cumulative <= drawn);
                let PairShare { from, to, .. } = &demands[index.min(demands.len() - 1)];
                [from, to]
            }
            Self::Nodes(hosts, pairs) => {
                let drawn = random.uniform();
                let index = pairs.partition_point(|(_, cumulative)| *cumulative <= drawn);
                let (ends, _) = pairs[index.min(pairs.len() - 1)];
                ends.map(|node| hosts[node][below(hosts[node].len(), random)].as_str())
            }
        }
    }
}

/// Draws a whole number below `n`, each equally likely.
fn below(n: usize, random: &mut cutline_units::RandomStream) -> usize {
    ((random.uniform() * n as f64) as usize).min(n - 1)
}

impl ArrivalsSpec {
    /// Returns the expected number of transfers.
    pub fn expected(&self) -> f64 {
        self.per_second * (self.until - self.from).as_secs_f64()
    }
}

impl Scenario {
    /// Draws the transfers of all groups with arrivals in the run with this seed, group by group in the order of their starts.
    ///
    /// Times, pairs and sizes of a group come from separate random streams of its name. So a change of sizes leaves the times as they
    /// are, and another load leaves the sequence of pairs and sizes as it is.
    pub fn transfers(&self, seed: u64) -> Vec<DrawnTransfer> {
        let groups = self.flows.iter().enumerate();
        let with_arrivals =
            groups.filter_map(|(group, spec)| Some((group, &spec.name, spec.arrivals.as_ref()?)));
        with_arrivals
            .flat_map(|(group, name, arrivals)| draw(group, name, arrivals, Streams::new(seed)))
            .collect()
    }
}

fn draw(group: usize, name: &str, arrivals: &ArrivalsSpec, streams: Streams) -> Vec<DrawnTransfer> {
    let [mut times, mut pairs, mut sizes] =
        ["arrivals", "pairs", "sizes"].map(|purpose| streams.stream(name, purpose));
    let pairing = Pairing::new(&arrivals.matrix, &mut pairs);
    let gaps = Distribution::Exponential { mean: 1.0 / arrivals.per_second };
    let length = (arrivals.until - arrivals.from).as_secs_f64();
    let mut drawn = Vec::new();
    let mut passed = gaps.sample(&mut times);
    while passed < length {
        let start = arrivals.from + Duration::from_secs_f64(passed);
        let [from, to] = pairing.draw(&mut pairs).map(str::to_owned);
        let name = format!("{name}.{}", drawn.len() + 1);
        drawn.push(DrawnTransfer { name, group, from, to, start, bytes: arrivals.sizes.draw(&mut sizes) });
        passed += gaps.sample(&mut times);
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn random() -> cutline_units::RandomStream {
        Streams::new(1).stream("test", "sizes")
    }

    #[test]
    fn a_table_has_its_mean_and_its_quantiles() {
        let table = SizeTable::parse("# sizes\n10 0.5\n\n20, 1\n").unwrap();
        // Half are 10 B, the others 15 B on the average.
        assert!((table.mean() - 12.5).abs() < 1e-12);
        assert_eq!(
            [0.0, 0.3, 0.5, 0.75, 1.0].map(|share| table.quantile(share)),
            [10.0, 10.0, 10.0, 15.0, 20.0]
        );
        assert_eq!(SizeTable::parse("10 50\n20 100").unwrap(), table);
        let jump = SizeTable::parse("6 0\n6 0.15\n13 1").unwrap();
        assert_eq!([0.1, 0.15].map(|share| jump.quantile(share)), [6.0, 6.0]);
        // No transfer has a size between these two.
        let two = SizeTable::parse("10 0.5\n20 0.5\n20 1").unwrap();
        assert_eq!([0.0, 0.5, 0.6, 1.0].map(|share| two.quantile(share)), [10.0, 10.0, 20.0, 20.0]);
        assert!((two.mean() - 15.0).abs() < 1e-12);
    }

    #[test]
    fn web_search_has_its_mean() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples/web-search.cdf");
        let web_search = std::fs::read_to_string(path).unwrap();
        let sizes = TransferSizes::Empirical(Arc::new(SizeTable::parse(&web_search).unwrap()));
        assert!((sizes.mean() - 1_711_250.0).abs() < 1.0, "{}", sizes.mean());
        let mut random = random();
        let drawn = (0..200_000).map(|_| sizes.draw(&mut random) as f64).sum::<f64>() / 200_000.0;
        assert!((drawn / sizes.mean() - 1.0).abs() < 0.02, "{drawn}");
    }

    #[test]
    fn errors_of_a_table_have_their_line() {
        for (text, why) in [
            ("", "no sizes"),
            ("10", "line 1: \"10\" is not a size and a share"),
            ("10 x", "line 1: \"x\" is no share from 0 to 100"),
            ("-1 0.5", "line 1: \"-1\" is no size"),
            ("10 nan", "is no share"),
            ("10 0.5\n20 0.4", "line 2: the share 0.4 is below 0.5"),
            ("10 0.5\n\n9 1", "line 3: the size 9 B is below 10 B"),
            ("10 0.5\n20 0.9", "the last share is 0.9; it must be 1"),
            ("0 1", "below 1 B"),
        ] {
            let error = SizeTable::parse(text).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn errors_of_a_matrix_have_their_line() {
        let mut graph = GraphSpec::default();
        for name in ["a", "b"] {
            graph.add_node(name);
        }
        for (text, why) in [
            ("", "no pair"),
            ("a b", "line 1: \"a b\" is not a source, a sink and a weight"),
            ("# all\na,b,1\na,c,1", "line 3: there is no node \"c\""),
            ("a,a,1", "both are \"a\""),
            ("a,b,-1", "line 1: \"-1\" is no weight"),
            ("a,b,1\na,b,2", "line 2: another line has the pair"),
            ("a,b,0", "no pair with a weight above 0"),
        ] {
            let error = TrafficMatrix::parse(text, &graph).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        let matrix = TrafficMatrix::parse("a,b,3\nb,a,1", &graph).unwrap();
        assert_eq!(matrix.shares(), BTreeMap::from([("a", [0.75, 0.25]), ("b", [0.25, 0.75])]));
        let pairing = Pairing::new(&matrix, &mut random());
        let mut random = random();
        let from_a = (0..1000).filter(|_| pairing.draw(&mut random) == ["a", "b"]).count();
        assert!((700..800).contains(&from_a), "{from_a}");
    }

    #[test]
    fn demands_are_divided_among_hosts() {
        let hosts =
            vec![vec!["a-h1".to_owned(), "a-h2".to_owned()], vec!["b".to_owned()], vec!["c".to_owned()]];
        let demands =
            Demands { hosts, weights: BTreeMap::from([([0, 1], 3.0), ([1, 0], 1.0), ([1, 2], 4.0)]) };
        let matrix = TrafficMatrix::Demands(Arc::new(demands.clone()));
        // Of eight parts, a sends three and receives one.
        let expected = [
            ("a-h1", [0.1875, 0.0625]),
            ("a-h2", [0.1875, 0.0625]),
            ("b", [0.625, 0.375]),
            ("c", [0.0, 0.5]),
        ];
        assert_eq!(matrix.shares(), BTreeMap::from(expected));
        let pairing = Pairing::new(&matrix, &mut random());
        let mut random = random();
        let mut counts: BTreeMap<[&str; 2], u32> = BTreeMap::new();
        for _ in 0..8000 {
            *counts.entry(pairing.draw(&mut random)).or_default() += 1;
        }
        let of = |from: &'static str, to: &'static str| f64::from(counts[&[from, to]]) / 1000.0;
        for (found, expected) in [
            (of("a-h1", "b"), 1.5),
            (of("a-h2", "b"), 1.5),
            (of("b", "a-h1"), 0.5),
            (of("b", "a-h2"), 0.5),
            (of("b", "c"), 4.0),
        ] {
            assert!((found / expected - 1.0).abs() < 0.2, "{counts:?}");
        }
        assert_eq!(counts.len(), 5);

        let symmetric = demands.symmetric();
        let both = [([0, 1], 2.0), ([1, 0], 2.0), ([1, 2], 2.0), ([2, 1], 2.0)];
        assert_eq!(symmetric.weights, BTreeMap::from(both));
    }

    proptest! {
        #[test]
        fn every_host_sends_to_another_one(hosts in 2usize..20, permutes in any::<bool>(), seed in 0u64..100) {
            let hosts: Arc<[String]> = (0..hosts).map(|host| format!("h{host}")).collect();
            let matrix = if permutes {
                TrafficMatrix::Permutation(hosts.clone())
            } else {
                TrafficMatrix::AllToAll(hosts.clone())
            };
            let mut random = Streams::new(seed).stream("test", "pairs");
            let pairing = Pairing::new(&matrix, &mut random);
            let pairs: BTreeSet<[&str; 2]> = (0..4000).map(|_| pairing.draw(&mut random)).collect();
            prop_assert!(pairs.iter().all(|[from, to]| from != to));
            let most = if permutes { hosts.len() } else { hosts.len() * (hosts.len() - 1) };
            // Of 380 pairs at most, 4000 draws leave few out.
            prop_assert!(pairs.len() <= most && pairs.len() * 10 >= most * 9);
            let sinks: BTreeSet<&str> = pairs.iter().map(|pair| pair[1]).collect();
            prop_assert!(!permutes || sinks.len() == pairs.len());
        }
    }
}
