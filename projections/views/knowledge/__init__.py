"""The items of knowledge: what holds now (`knowledge`), and every version there ever was."""
