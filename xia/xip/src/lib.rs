//! XIP: header, DAG addresses, forwarding, and what principals share.
