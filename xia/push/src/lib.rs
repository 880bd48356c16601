//! Reliable push of files to many receivers with RaptorQ (RFC 6330) and no back channel.
