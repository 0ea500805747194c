//! NATS and nothing else: trades whole signed messages with the rest and holds no key but the transport's.
