#pragma once
/// Result of a target for its replayer: true if the input was accepted. A seed named good* must be accepted; otherwise
/// it is out of date and its mutations end at the first check.
inline bool wasAccepted = false;
