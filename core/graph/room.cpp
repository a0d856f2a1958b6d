namespace cleave {}
