//! The harness behind the tests: brokers, container runtimes, agents and controllers, started and stopped.
