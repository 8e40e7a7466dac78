/** The service itself: its home page and service document, problems, fixed files (PROTOCOL §6). */
import { Effect } from "effect"
import { type Call, type Handled, type Handler, shown } from "../call.ts"
import { fail } from "../failures.ts"
import type { Link } from "../html/layout.ts"
import { html, link } from "../html/template.ts"
import { isProblemSlug, problemTypes, problemTypeView } from "../problem.ts"
import type { View } from "../representations.ts"
import type { Route } from "../routing.ts"
import { type Service, uri } from "../service.ts"
import { element } from "../xml.ts"
import { fileRoutes } from "./files.ts"

/** The entry points, by what they are to the service. */
const entryPoints: ReadonlyArray<readonly [rel: string, path: string, title: string]> = [
  ["content", "/content", "Content: POST publishes a resource"],
  ["mailboxes", "/mailboxes", "Mailboxes: POST opens one, GET lists your own"],
  ["outgoing", "/outgoing", "Your outgoing mailbox: POST there sends, and is tried again"],
  ["cabinets", "/cabinets", "Cabinets: several mailboxes read as one"],
  ["bridge", "/cross_bridge", "The Bridge of Death: where a session begins"],
  ["sessions", "/sessions", "Sessions: all that came to the bridge"],
  ["questions", "/questions/name_question", "The same questions without a session"],
  ["quotes", "/quotes", "Quotes: GET with quotename, or all of them"],
  ["customers", "/customers", "Customers: GET with agemin and return"],
  ["queries", "/queries", "Queries: POST makes one too long for an address"],
  ["accounts", "/accounts", "Accounts and their tokens"],
  ["cluster", "/cluster", "How the service stands, for the role admin"],
  ["problems", "/problems", "The errors that this service answers"],
  ["service-desc", "/openapi.json", "All of this for programs: OpenAPI 3.1"]
]

const homeBody = (service: Service) =>
  html`<p>Mail that the post office keeps until its recipient calls for it.
Publish something, tell a mailbox that it is there, and whoever reads the mailbox fetches it.</p>
<h2>Mail</h2>
<p>A message has two parts. Its content is any resource; POST the bytes to
<code>/content</code> and you get a URI that nobody can guess:</p>
<pre>curl -i ${uri(service, "/content")} -H 'Content-Type: text/plain' --data-binary 'Hello!'</pre>
<p>Its notification is a small document that says where the content is. POST it to a mailbox:</p>
<pre>curl -i ${uri(service, "/mailboxes/NAME")} -H 'Content-Type: application/xml' \\
  --data '&lt;notification&gt;&lt;item&gt;
    &lt;description&gt;Greetings&lt;/description&gt;&lt;url&gt;URI of the content&lt;/url&gt;
  &lt;/item&gt;&lt;/notification&gt;'</pre>
<p>${link("/mailboxes", "Your mailboxes")}: open one, read those you have. It asks for the name and
token of an account. Every mailbox has a page with a form, too. ${link("/cabinets", "A cabinet")}
shows several mailboxes as one.</p>
<p>POST a notification with one or more <code>to</code> to ${
    link("/outgoing", "your outgoing mailbox")
  }
instead, and it is delivered to all of them, with patience; what became of each has a URI, too.
Who reads a mailbox may also register a callback there, which is told what is new.</p>
<h2>The bridge</h2>
<p>A conversation whose every state has a URI: ${
    link("/cross_bridge", "cross the Bridge of Death")
  },
or look at ${link("/sessions", "who came to it")}. The bridge-keeper also asks
${link("/questions/name_question", "without keeping anything")}.</p>
<h2>Questions by address</h2>
<p>${link("/quotes", "Quotes")} and ${
    link("/customers?agemin=21&return=name+age", "customers of 21 and older")
  } are read by their address;
what is more than an address can say is ${link("/queries", "a query with a URI of its own")}.</p>
<h2>Everything else</h2>
<ul>
<li>${link("/accounts", "Accounts")}, for those with the role admin</li>
<li>${link("/cluster", "The cluster")}: how the service stands, likewise</li>
<li>${link("/problems", "Problems")}: every error, and what to do about it</li>
<li>${link("/openapi.json", "OpenAPI")}: all of it for programs</li>
</ul>
<p class="quiet">restante ${service.settings.version}</p>
`

const home = (service: Service): View => ({
  title: "Poste restante",
  tree: element(
    "service",
    { version: service.settings.version },
    ...entryPoints.map(([rel, path, title]) =>
      element("link", { rel, href: uri(service, path), title })
    )
  ),
  links: [{ rel: "service-desc", href: uri(service, "/openapi.json"), type: "application/json" }],
  body: () => homeBody(service)
})

const problemsLink: Link = { rel: "collection", href: "/problems", title: "All problems" }

const slugs = Object.keys(problemTypes).filter(isProblemSlug)

const problemList = (service: Service): View => ({
  title: "Problems",
  tree: element(
    "problem-types",
    {},
    ...slugs.map((slug) =>
      element("problem-type", {
        href: uri(service, `/problems/${slug}`),
        status: problemTypes[slug].status,
        title: problemTypes[slug].title
      })
    )
  ),
  body: () =>
    html`<div class="scroll"><table>
<thead><tr><th scope="col">Status</th><th scope="col">Problem</th></tr></thead>
<tbody>${
      slugs.map((slug) =>
        html`<tr><td>${problemTypes[slug].status}</td><td>${
          link(`/problems/${slug}`, problemTypes[slug].title)
        }</td></tr>
`
      )
    }</tbody></table></div>
`
})

const problem = ({ parameters }: Call): Handled => {
  const view = problemTypeView(parameters.get("slug"))
  return view === undefined || parameters.secret("slug") !== undefined
    ? Effect.fail(fail("not-found"))
    : Effect.succeed(shown({ ...view, links: [problemsLink] }))
}

/** The home page and service document, the problems, and the fixed files. */
export const homeRoutes = (service: Service): ReadonlyArray<Route<Handler>> => [
  { pattern: "/", methods: { GET: { handle: () => Effect.succeed(shown(home(service))) } } },
  {
    pattern: "/problems",
    methods: { GET: { handle: () => Effect.succeed(shown(problemList(service))) } }
  },
  { pattern: "/problems/{slug}", methods: { GET: { handle: problem } } },
  ...fileRoutes
]
