// A menu at a button: choices by name.

// `choices` are pairs of a label and a function.
function openChoices(button, choices) {
  const menu = $("choices-menu");
  menu.replaceChildren(...choices.map(([label, choose]) => {
    const item = node("button", { type: "button", textContent: label });
    item.addEventListener("click", () => {
      menu.hidePopover();
      choose();
    });
    return item;
  }));
  menu.showPopover();
  const { left, bottom, top } = button.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = menu;
  menu.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`;
  menu.style.top = `${bottom + height + 8 < innerHeight ? bottom + 4 : Math.max(8, top - height - 4)}px`;
  menu.firstElementChild?.focus();
  menu.ontoggle = ({ newState }) => {
    if (newState === "closed" && (document.activeElement === document.body || menu.contains(document.activeElement))) button.focus();
  };
}

$("choices-menu").addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "Escape") event.stopPropagation();
  if (by === undefined) return;
  event.preventDefault();
  const items = [...$("choices-menu").children];
  items[(items.indexOf(document.activeElement) + by + items.length) % items.length].focus();
});
