//! Owners: a login or group by name, or a number that needs no account.

use std::io;

use nix::unistd::{Group, User};

/// Which account a name is looked up among.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Account {
    /// Logins.
    User,
    /// Groups.
    Group,
}

/// The numeric id of `name`; empty means root. `None` where no such account exists.
///
/// # Errors
///
/// Where the user database could not be read.
pub fn id(account: Account, name: &str) -> io::Result<Option<u32>> {
    if name.is_empty() {
        return Ok(Some(0));
    }
    if let Ok(id) = name.parse() {
        return Ok(Some(id));
    }
    match account {
        Account::User => Ok(User::from_name(name)?.map(|user| user.uid.as_raw())),
        Account::Group => Ok(Group::from_name(name)?.map(|group| group.gid.as_raw())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_found_and_a_stranger_is_not() {
        assert_eq!(id(Account::User, "").unwrap(), Some(0));
        assert_eq!(id(Account::User, "root").unwrap(), Some(0));
        assert_eq!(id(Account::Group, "root").unwrap(), Some(0));
        assert_eq!(id(Account::User, "4711").unwrap(), Some(4711));
        assert_eq!(id(Account::User, "nobody-of-this-name").unwrap(), None);
    }
}
