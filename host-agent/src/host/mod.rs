//! The only code that touches the machine; every effect is one function with a named point.
