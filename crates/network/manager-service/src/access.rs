//! Users who may use the manager, and their policies.

use cutline_manager::resources::UserPolicy;

/// Policy of a user or of the members of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AccessRule {
    /// Number of the user or of the group.
    pub id: u32,
    /// The policy.
    pub policy: UserPolicy,
}

/// Rules by which a user may use the manager.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessRules {
    /// True if users without a rule may use it, with the default policy.
    pub is_open: bool,
    /// Rules of users.
    pub users: Vec<AccessRule>,
    /// Rules of groups. Of several that hold, the first counts.
    pub groups: Vec<AccessRule>,
}

impl Default for AccessRules {
    fn default() -> Self {
        Self { is_open: true, users: Vec::new(), groups: Vec::new() }
    }
}

impl AccessRules {
    /// Returns the policy of a user with these groups; `None` if the user may not use the manager. The user's own rule
    /// counts before those of groups. Root may always use it.
    pub fn policy(&self, user: u32, groups: &[u32]) -> Option<UserPolicy> {
        let own = self.users.iter().find(|rule| rule.id == user);
        let rule = own.or_else(|| self.groups.iter().find(|rule| groups.contains(&rule.id)));
        let default = || (self.is_open || user == 0).then(UserPolicy::default);
        rule.map(|rule| rule.policy).or_else(default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_users_own_rule_counts_before_those_of_groups() {
        let rule = |id, weight| AccessRule { id, policy: UserPolicy { weight, ..UserPolicy::default() } };
        let rules = AccessRules {
            is_open: false,
            users: vec![rule(1000, 5)],
            groups: vec![rule(44, 3), rule(27, 2)],
        };
        let weight = |user, groups: &[u32]| rules.policy(user, groups).map(|policy| policy.weight);
        assert_eq!(weight(1000, &[27, 44]), Some(5));
        assert_eq!(weight(1001, &[27, 44]), Some(3), "the first group of the file");
        assert_eq!(weight(1001, &[27]), Some(2));
        assert_eq!([weight(1001, &[1]), weight(0, &[])], [None, Some(1)]);
        assert_eq!(AccessRules::default().policy(1001, &[]), Some(UserPolicy::default()));
    }
}
