//! Answers folded from events; may be thrown away and rebuilt.
