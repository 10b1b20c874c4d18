//! Tables and scalar objects of a module, and the search in them.

use crate::object::{MibColumn, Object};
use crate::snapshot::{Index, Snapshot};
use async_snmp::Value;
use async_snmp::handler::SetTestError;
use cutline_publish::ManagerRequest;

/// Definition of a table, or of a group of scalar objects.
#[derive(Debug)]
pub struct Definition {
    /// Last arc of its name.
    pub arc: u32,
    /// Beginning of its objects' names, such as `cqosSocket`.
    pub name: &'static str,
    /// Meaning of the table.
    pub description: &'static str,
    /// Meaning of a row; empty of scalar objects.
    pub row: &'static str,
    /// Objects of the index; none of scalar objects.
    pub index: Vec<Object>,
}

/// A table with rows of type `R`, rising by index.
pub struct Table<R: 'static> {
    /// Its definition.
    pub definition: Definition,
    /// Its columns, rising by arc.
    pub columns: Vec<MibColumn<R>>,
    /// Its rows in a snapshot.
    pub rows: fn(&Snapshot) -> &[(Index, R)],
}

/// A table or a group of scalar objects, whatever its rows are.
pub trait Group: Send + Sync {
    /// Returns its definition.
    fn definition(&self) -> &Definition;

    /// Returns its columns, or its scalar objects.
    fn objects(&self) -> Vec<&Object>;

    /// Returns the value at the arcs below the group's name; `None` if the object has no such instance.
    ///
    /// # Errors
    /// When there is no such object at all.
    fn get(&self, snapshot: &Snapshot, below: &[u32]) -> Result<Option<Value>, NoSuchObject>;

    /// Returns the request for a set value, and the index of its row.
    ///
    /// # Errors
    /// When there is no such object, or it cannot be set to this value.
    fn request(
        &self,
        snapshot: &Snapshot,
        below: &[u32],
        value: &Value,
    ) -> Result<(Index, ManagerRequest), SetTestError>;

    /// Returns the names of the objects that managers may set.
    fn writable(&self) -> Vec<&str>;

    /// Returns the first value behind the arcs below the group's name, with its own arcs there.
    fn next(&self, snapshot: &Snapshot, below: &[u32]) -> Option<(Vec<u32>, Value)>;
}

/// A module has no such object, whatever the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchObject;

/// Arc of a table's row below the table.
const ENTRY: u32 = 1;

impl<R: Send + Sync> Group for Table<R> {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn objects(&self) -> Vec<&Object> {
        self.columns.iter().map(|column| &column.object).collect()
    }

    fn get(&self, snapshot: &Snapshot, below: &[u32]) -> Result<Option<Value>, NoSuchObject> {
        let [ENTRY, arc, index @ ..] = below else { return Err(NoSuchObject) };
        let column = self.columns.iter().find(|column| column.object.arc == *arc).ok_or(NoSuchObject)?;
        let rows = (self.rows)(snapshot);
        let found = rows.binary_search_by(|(own, _)| own.as_slice().cmp(index));
        Ok(found.ok().and_then(|at| column.value(&rows[at].1)))
    }

    fn request(
        &self,
        snapshot: &Snapshot,
        below: &[u32],
        value: &Value,
    ) -> Result<(Index, ManagerRequest), SetTestError> {
        let [ENTRY, arc, index @ ..] = below else { return Err(SetTestError::NotWritable) };
        let column = self.columns.iter().find(|column| column.object.arc == *arc);
        let column = column.filter(|column| column.is_writable()).ok_or(SetTestError::NotWritable)?;
        let rows = (self.rows)(snapshot);
        let at = rows
            .binary_search_by(|(own, _)| own.as_slice().cmp(index))
            .map_err(|_| SetTestError::NoCreation)?;
        Ok((index.to_vec(), column.request(&rows[at].1, value)?))
    }

    fn writable(&self) -> Vec<&str> {
        let writable = self.columns.iter().filter(|column| column.is_writable());
        writable.map(|column| column.object.name.as_str()).collect()
    }

    fn next(&self, snapshot: &Snapshot, below: &[u32]) -> Option<(Vec<u32>, Value)> {
        let (first, index) = match below {
            [] | [0, ..] | [ENTRY] => (0, &[][..]),
            [ENTRY, column, index @ ..] => (*column, index),
            _ => return None,
        };
        let rows = (self.rows)(snapshot);
        self.columns.iter().filter(|column| column.object.arc >= first).find_map(|column| {
            let from = if column.object.arc == first {
                rows.partition_point(|(own, _)| own.as_slice() <= index)
            } else {
                0
            };
            rows[from..].iter().find_map(|(own, row)| {
                let value = column.value(row)?;
                Some(([&[ENTRY, column.object.arc], own.as_slice()].concat(), value))
            })
        })
    }
}

/// Scalar objects of the host, which have one value each.
pub struct Scalars {
    /// Their definition.
    pub definition: Definition,
    /// The objects, rising by arc.
    pub objects: Vec<MibColumn<Snapshot>>,
}

impl Group for Scalars {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn objects(&self) -> Vec<&Object> {
        self.objects.iter().map(|object| &object.object).collect()
    }

    fn get(&self, snapshot: &Snapshot, below: &[u32]) -> Result<Option<Value>, NoSuchObject> {
        let (arc, instance) = below.split_first().ok_or(NoSuchObject)?;
        let object = self.objects.iter().find(|object| object.object.arc == *arc).ok_or(NoSuchObject)?;
        Ok(if instance == [0] { object.value(snapshot) } else { None })
    }

    fn request(&self, _: &Snapshot, _: &[u32], _: &Value) -> Result<(Index, ManagerRequest), SetTestError> {
        Err(SetTestError::NotWritable)
    }

    fn writable(&self) -> Vec<&str> {
        Vec::new()
    }

    fn next(&self, snapshot: &Snapshot, below: &[u32]) -> Option<(Vec<u32>, Value)> {
        self.objects.iter().find_map(|object| {
            let name = [object.object.arc, 0];
            if name.as_slice() <= below {
                return None;
            }
            Some((name.to_vec(), object.value(snapshot)?))
        })
    }
}

/// A module: groups of objects below one name.
pub struct Module {
    /// Name below which the groups are.
    pub root: Vec<u32>,
    /// The groups, rising by arc.
    pub groups: Vec<Box<dyn Group>>,
}

impl Module {
    /// Returns the value of a name; `None` if the object has no such instance.
    ///
    /// # Errors
    /// When there is no such object at all.
    pub fn get(&self, snapshot: &Snapshot, name: &[u32]) -> Result<Option<Value>, NoSuchObject> {
        let below = name.strip_prefix(self.root.as_slice()).ok_or(NoSuchObject)?;
        let (arc, below) = below.split_first().ok_or(NoSuchObject)?;
        let group = self.groups.iter().find(|group| group.definition().arc == *arc).ok_or(NoSuchObject)?;
        group.get(snapshot, below)
    }

    /// Returns the request for a set value, and the index of its row.
    ///
    /// # Errors
    /// When there is no such object, or it cannot be set to this value.
    pub fn request(
        &self,
        snapshot: &Snapshot,
        name: &[u32],
        value: &Value,
    ) -> Result<(Index, ManagerRequest), SetTestError> {
        let below = name.strip_prefix(self.root.as_slice()).and_then(<[u32]>::split_first);
        let (arc, below) = below.ok_or(SetTestError::NotWritable)?;
        let group = self.groups.iter().find(|group| group.definition().arc == *arc);
        group.ok_or(SetTestError::NotWritable)?.request(snapshot, below, value)
    }

    /// Returns the first value behind a name, with its own name.
    pub fn next(&self, snapshot: &Snapshot, name: &[u32]) -> Option<(Vec<u32>, Value)> {
        let below = match name.strip_prefix(self.root.as_slice()) {
            Some(below) => below,
            None if name < self.root.as_slice() => &[],
            None => return None,
        };
        let (first, rest) = below.split_first().map_or((0, &[][..]), |(first, rest)| (*first, rest));
        self.groups.iter().filter(|group| group.definition().arc >= first).find_map(|group| {
            let arc = group.definition().arc;
            let (below, value) = group.next(snapshot, if arc == first { rest } else { &[] })?;
            Some(([self.root.as_slice(), &[arc], &below].concat(), value))
        })
    }
}
