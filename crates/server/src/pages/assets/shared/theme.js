"use strict";
// Runs in the head, so that the page is never painted in another theme first. Without a choice the system's applies.
try {
  const theme = localStorage.getItem("hob-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // The browser forbids storage.
}
