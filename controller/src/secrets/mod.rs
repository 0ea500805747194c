//! The secrets store: names, values, who needs which, and the masker.
