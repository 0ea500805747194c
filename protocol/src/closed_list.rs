//! Closed lists whose every member has a stable word.

/// Declares one: the enum, `ALL` in the order of the list, and `as_str`.
///
/// ```
/// replicator_protocol::closed_list! {
///     /// What a door can be.
///     #[derive(Debug, Clone, Copy, PartialEq, Eq)]
///     pub enum Door {
///         /// It lets through.
///         Open = "open",
///         /// It does not.
///         Shut = "shut",
///     }
/// }
/// assert_eq!(Door::ALL.iter().map(|door| door.as_str()).collect::<Vec<_>>(), ["open", "shut"]);
/// ```
#[macro_export]
macro_rules! closed_list {
    ($(#[$about:meta])* $vis:vis enum $list:ident { $($(#[$doc:meta])* $name:ident = $word:literal,)* }) => {
        $(#[$about])*
        $vis enum $list { $($(#[$doc])* $name,)* }

        impl $list {
            /// Every one, in the order of the list.
            $vis const ALL: &[Self] = &[$(Self::$name),*];

            /// Its word, which never changes its meaning.
            #[must_use]
            $vis fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }
        }
    };
}
