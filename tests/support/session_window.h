#pragma once
/// A window and the session it shows, as `main` makes them: the session goes last.
#include "views/window/main_window.h"

namespace cleave::views::testing {

struct OwnSession {
  Session own;
};

class SessionWindow : private OwnSession, public MainWindow {
 public:
  explicit SessionWindow(bool remembers = false) : MainWindow(own, remembers) {}
};

}  // namespace cleave::views::testing
