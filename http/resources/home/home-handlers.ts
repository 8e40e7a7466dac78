/** The service itself: its home page and service document, problems, static files (protocol §6). */
import { Effect } from "effect"
import { isSlug } from "../../auth/credentials/index.ts"
import { html, link, type PageLink, table } from "../../formats/html/index.ts"
import { isProblemSlug, parseForm, problemTypes, problemTypeView,
  type ResourceView } from "../../formats/index.ts"
import { element } from "../../formats/xml/index.ts"
import { absoluteUri, type Call, type Handled, httpError, type Service,
  viewAnswer } from "../../pipeline/index.ts"
import { offeredMailboxNames } from "../mailboxes/index.ts"
import { tour, type Visitor } from "./tour.ts"

/** The entry points of the service document. */
const entryPoints: ReadonlyArray<readonly [rel: string, path: string, title: string]> = [
  ["content", "/content", "Content: POST publishes a resource, GET lists your own"],
  ["mailboxes", "/mailboxes", "Mailboxes: POST opens one, GET lists your own"],
  ["outgoing", "/outgoing", "Your outgoing mailbox: POST sends, with retries"],
  ["cabinets", "/cabinets", "Cabinets: several mailboxes read as one"],
  ["bridge", "/cross_bridge", "The Bridge of Death: where a session begins"],
  ["sessions", "/sessions", "Sessions: all that came to the bridge"],
  ["questions", "/questions/name_question", "The same questions without a session"],
  ["quotes", "/quotes", "Quotes: GET with quotename, or all of them"],
  ["customers", "/customers", "Customers: GET with agemin and return"],
  ["queries", "/queries", "Queries: POST makes one too long for an address"],
  ["accounts", "/accounts", "Accounts and their tokens"],
  ["administration", "/admin", "What needs attention, for the role admin"],
  ["cluster", "/cluster", "The state of the service, for the role admin"],
  ["audit", "/audit", "The audit log, for the role admin"],
  ["blocks", "/blocks", "Depositors that the service takes nothing from, for the role admin"],
  ["reports", "/reports", "Notifications that readers have reported, for the role admin"],
  ["limits", "/limits", "Who uses most of the limits, for the role admin"],
  ["settings", "/settings", "The settings of this node, for the role admin"],
  ["problems", "/problems", "The errors that this service answers"],
  ["help", "/docs", "The documentation: GET with q searches it"],
  ["service-desc", "/openapi.json", "All of this for programs: OpenAPI 3.1"]
]

const homeBody = (
  service: Service,
  mailbox: string | undefined,
  visitor: Visitor | undefined
) =>
  html`<p class="lead">Mail that the post office keeps until its recipient collects it. Publish a
message and deposit a notification of it in a mailbox; the readers of the mailbox fetch it.</p>
<p>Every message, mailbox, delivery and conversation is a resource with an address of its own: a
page for you, XML, JSON or plain text for a program. Whatever the service has accepted is on disk;
it will be delivered even if the service restarts.</p>
<h2>Try it in a minute</h2>
${tour(service, mailbox, visitor)}
<h2>The same by program</h2>
<p>A message has two parts. Its content is any resource; POST the bytes to
<code>/content</code> and you get a URI that nobody can guess:</p>
<pre>curl -i ${absoluteUri(service, "/content")} \\
  -H 'Accept: application/json' \\
  -H 'Content-Type: text/plain' \\
  --data-binary 'Hello!'</pre>
<p>Its notification is a small document that says where the content is. POST it to a mailbox:</p>
<pre>curl -i ${absoluteUri(service, `/mailboxes/${mailbox ?? "NAME"}`)} \\
  -H 'Accept: application/json' \\
  -H 'Content-Type: application/json' \\
  --data '{"item":{"description":"Greetings","url":"URI of the content"}}'</pre>
<ul>
<li>${link("/docs/how-to/recipes", "Recipes")}: cron and shell, GitHub Actions, Home Assistant,
webhooks of Grafana and others, Slack and e-mail</li>
<li>${link("/docs", "The documentation")}: guides, the protocol, and ${
    link("/docs/api", "every operation")
  }</li>
<li>${link("/openapi.json", "All of it for programs")}: OpenAPI 3.1, with every answer</li>
<li>${link("/problems", "Problems")}: every error, and what to do about it</li>
<li>Feeds: a mailbox and a cabinet are Atom and RSS, at their address with
<code>?format=atom</code> or <code>?format=rss</code>; a mailbox is an inbox of Linked Data
Notifications, too</li>
<li>${link("/cluster", "The cluster")}, the state of the service, ${
    link("/accounts", "all accounts")
  }, and ${link("/admin", "what needs attention")}: for the role admin</li>
</ul>
<p class="quiet">restante ${service.settings.version}</p>
`

const home = (
  service: Service,
  mailbox: string | undefined,
  visitor: Visitor | undefined
): ResourceView => ({
  title: "Poste restante",
  tree: element(
    "service",
    { version: service.settings.version },
    ...entryPoints.map(([rel, path, title]) =>
      element("link", { rel, href: absoluteUri(service, path), title })
    )
  ),
  links: [{
    rel: "service-desc",
    href: absoluteUri(service, "/openapi.json"),
    type: "application/json"
  }],
  body: () => homeBody(service, mailbox, visitor)
})

/** The mailboxes of their account that signed-in people are offered. */
const offeredMailboxes = 3

const visitorOf = (service: Service, call: Call): Effect.Effect<Visitor | undefined> => {
  const { viewer: account } = call.request
  return account === undefined
    ? Effect.undefined
    : Effect.map(
      offeredMailboxNames(service, call, offeredMailboxes),
      (mailboxes) => ({ account, mailboxes })
    )
}

/** The home page; an invalid `mailbox` is ignored, as unknown parameters are. */
export const getHome = (service: Service) => (call: Call): Handled => {
  const query = parseForm(call.request.query)
  const mailbox = query.ok ? query.value.get("mailbox")?.trim() : undefined
  const isNamed = mailbox !== undefined && isSlug(mailbox)
  return Effect.map(
    visitorOf(service, call),
    (visitor) => viewAnswer(home(service, isNamed ? mailbox : undefined, visitor))
  )
}

const problemsLink: PageLink = { rel: "collection", href: "/problems", title: "All problems" }

const slugs = Object.keys(problemTypes).filter(isProblemSlug)

const problemList = (service: Service): ResourceView => ({
  title: "Problems",
  tree: element(
    "problem-types",
    {},
    ...slugs.map((slug) =>
      element("problem-type", {
        href: absoluteUri(service, `/problems/${slug}`),
        status: problemTypes[slug].status,
        title: problemTypes[slug].title
      })
    )
  ),
  body: () =>
    table(
      "Problems",
      [{ number: "Status" }, "Problem"],
      slugs.map((slug) =>
        html`<tr><td class="num">${problemTypes[slug].status}</td><td>${
          link(`/problems/${slug}`, problemTypes[slug].title)
        }</td></tr>
`
      )
    )
})

export const getProblems = (service: Service) => (): Handled =>
  Effect.succeed(viewAnswer(problemList(service)))

export const getProblem = () => ({ parameters }: Call): Handled => {
  const view = problemTypeView(parameters.get("slug"))
  return view === undefined || parameters.secret("slug") !== undefined
    ? Effect.fail(httpError("not-found"))
    : Effect.succeed(viewAnswer({ ...view, links: [problemsLink] }))
}
