//! The command line: arguments, output, failures; one file a command under commands/.
