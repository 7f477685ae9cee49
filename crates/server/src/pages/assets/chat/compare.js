// Two models answer the same question, side by side.

let pair = null; // the two turns that are compared
const pairNode = node("div", { className: "pair" });

function pairBox(turns) {
  placeNodes(pairNode, turns.map((turn) => viewsOf(turn).answer.root));
  return pairNode;
}

// The models that the next question goes to.
function comparedModels() {
  const model = chat.settings.model ?? "default";
  const other = $("second").value;
  return other === "" || other === model || editing !== null ? [model] : [model, other];
}

function continueWith(turn) {
  pair = null;
  showBranch(turn);
  $("question").focus();
}
