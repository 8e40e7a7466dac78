/** A small documentation, in the form in which the build writes it. */
import { type DocsSite, Documentation } from "../../http/documentation/index.ts"

const page = (
  path: string,
  section: string,
  title: string,
  html: string,
  parts: DocsSite["pages"][number]["parts"]
): DocsSite["pages"][number] => ({
  path,
  file: `docs/${path === "" ? "README" : path}.md`,
  title,
  section,
  headings: parts.filter(({ id }) => id !== "")
    .map(({ id, title: text }) => ({ level: 2, id, text })),
  parts,
  html
})

export const testSite: DocsSite = {
  pages: [
    page("", "", "Documentation", "<p>All pages.</p>", [
      { id: "", title: "Documentation", text: "All pages." }
    ]),
    page(
      "quick-start",
      "Start",
      "Quick start",
      "<p>From a clone.</p>\n<h2 id=\"the-first-message\">The first message</h2>\n<p>Send it.</p>",
      [
        { id: "", title: "Quick start", text: "From a clone." },
        {
          id: "the-first-message",
          title: "The first message",
          text: "Send it, and read <it> back."
        },
        { id: "what-next", title: "What next", text: "Read on." }
      ]
    ),
    page("how-to/recipes", "Use it", "Recipes", "<p>cron</p>", [
      { id: "", title: "Recipes", text: "A cron job sends a message when it ends." }
    ]),
    page("modules/http", "Change it", "http", "<p>wire</p>", [
      { id: "", title: "http", text: "A request passes wire, bytes of it." }
    ]),
    page("reference/settings", "Reference", "Settings", "<p>PORT</p>", [
      { id: "", title: "Settings", text: "PORT is the port of the service." }
    ])
  ],
  pictures: { "mailbox.webp": Buffer.from("RIFF, and so on").toString("base64") }
}

export const testDocumentation = (): Documentation =>
  new Documentation(() => Promise.resolve(JSON.stringify(testSite)))
