#pragma once
/// What a target tells its replayer: whether it took the input. A seed called good* must be taken, or it is out of date
/// and its mutations end at the first check.
inline bool wasAccepted = false;
