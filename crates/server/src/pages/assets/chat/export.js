// A conversation as a Markdown file: the shown branch.

const ENDINGS = { stopped: "*Stopped here.*", cut: "*Cut here.*", failed: "*Broke off here.*", running: "*Still being answered.*" };

function asMarkdown(title, path) {
  const parts = path.flatMap(({ question, answer }) => {
    const files = question.attachments.map(({ name }) => `*With ${name}.*`);
    const asked = ["## You", ...files, question.text].filter(Boolean).join("\n\n");
    if (answer === null) return [asked];
    const by = answer.model === "" ? "Hob" : `Hob (${answer.model})`;
    return [asked, [`## ${by}`, answer.text, ENDINGS[answer.ending]].filter(Boolean).join("\n\n")];
  });
  return `${[`# ${title || "Conversation"}`, ...parts].join("\n\n")}\n`;
}

function fileNameOf(title) {
  const name = title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").toLowerCase();
  return `${name || "conversation"}.md`;
}
