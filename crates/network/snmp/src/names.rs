//! Names of CUTLINE-QOS-MIB and of its parts.

/// Name of the module: an arc of net-snmp's numbers for experiments (`netSnmpPlaypen`), until Cutline has an enterprise number.
pub const ROOT: &[u32] = &[1, 3, 6, 1, 4, 1, 8072, 9999, 9999, 2005];
/// Arc of the notifications below the module.
pub const NOTIFICATIONS: u32 = 0;
/// Arc of the objects below the module.
pub const OBJECTS: u32 = 1;
