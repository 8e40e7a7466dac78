/** Fills a service with one resource of each kind, so that every page has content. */
import { type Answer, asAdmin, childOf, expectStatus, openMailbox, parseXml, postXml,
  send } from "../client.ts"
import { eventually } from "../process.ts"
import { echoes, receiver } from "../receivers.ts"
import { administrationPages } from "./sample-administration.ts"
import { createFilesMailbox } from "./sample-files.ts"
import { pathOf, type SamplePage, samplePage } from "./sample-page.ts"

const statusWithinMs = 120_000

const made = (answer: Answer): string =>
  pathOf(expectStatus(answer, 201, 202).headers.get("location"))

const item = (about: string, url: string, more = ""): string =>
  `<item><description>${about}</description><url>${url}</url>${more}</item>`

/** A mailbox with messages, an empty mailbox, and the page of a notification. */
const mailboxes = async (base: string): Promise<ReadonlyArray<SamplePage>> => {
  const alice = await openMailbox(base, "alice")
  const path = pathOf(alice.path)
  await openMailbox(base, "bob")
  const headers = { "content-type": "text/plain" }
  const text = "The boiler\nIt makes a noise at night, like a train that never arrives."
  expectStatus(await send(base, path, { method: "POST", headers, body: text }), 202)
  const deposited: Array<Answer> = []
  for (const about of ["The keys", "A parcel that is too large for the letter box", "Rent"]) {
    const from = "<from>http://peer.test/outgoing/landlady</from><password>mellon</password>"
    const more = about === "Rent" ? from : ""
    const url = `${base}/problems?${encodeURIComponent(about)}`
    const document = `<notification>${item(about, url, more)}</notification>`
    deposited.push(expectStatus(await postXml(base, path, document), 202))
  }
  const notification = pathOf(deposited[0]?.headers.get("location") ?? null)
  return [
    samplePage("mailboxes", "/mailboxes"),
    samplePage("mailbox", path),
    samplePage("mailbox-empty", "/mailboxes/bob"),
    samplePage("mailbox-shared", pathOf(alice.shared)),
    samplePage("mailbox-public", path, { isStranger: true }),
    samplePage("notification", notification),
    samplePage("notification-removal", `${notification}?remove=true`)
  ]
}

/** A mailbox with a picture and a file, and the page of each; both have a priority and tags. */
const files = async (base: string): Promise<ReadonlyArray<SamplePage>> => {
  const { file, path, picture } = await createFilesMailbox(base, "files", asAdmin)
  return [
    samplePage("mailbox-files", path),
    samplePage("mailbox-files-filtered", `${path}?tag=door&priority=5`),
    samplePage("notification-picture", picture),
    samplePage("notification-file", file)
  ]
}

/** A notification to three recipients, each with another status. */
const outgoing = async (base: string): Promise<ReadonlyArray<SamplePage>> => {
  const busy = await receiver((_, response) => void response.writeHead(503).end())
  const gone = await receiver((_, response) => void response.writeHead(410).end())
  const to = [`${base}/mailboxes/alice`, `${busy}/inbox`, `${gone}/${"a-long-path/".repeat(8)}`]
  const document = `<notification>${to.map((one) => `<to>${one}</to>`).join("")}${
    item("The gas meter is read tomorrow", `${base}/problems`)
  }</notification>`
  const path = made(await postXml(base, "/outgoing/admin", document, asAdmin))
  await eventually(statusWithinMs, "each recipient has another status", async () => {
    const { text } = await send(base, path, { headers: asAdmin })
    const actual = parseXml(text).children.map(({ attributes }) => attributes["status"])
    return ["success", "retry", "failed"].every((one) => actual.includes(one)) ? true : undefined
  }, 100)
  return [
    samplePage("outgoing", "/outgoing/admin"),
    samplePage("pauses", "/outgoing/admin/pauses"),
    samplePage("sent", path),
    samplePage("sent-attempts", `${path}/attempts`)
  ]
}

/** A verified callback, and one that does not answer the challenge. */
const registrations = async (base: string): Promise<ReadonlyArray<SamplePage>> => {
  const origin = await receiver((received, response) => {
    if (!echoes(received, response)) response.writeHead(204).end()
  })
  const silent = await receiver((_, response) => void response.writeHead(404).end())
  const register = async (callback: string): Promise<string> => {
    const document = `<registration><callback>${callback}</callback></registration>`
    return made(await postXml(base, "/mailboxes/alice/registrations", document, asAdmin))
  }
  const active = await register(`${origin}/hook`)
  await register(`${silent}/hook`)
  return [
    samplePage("registrations", "/mailboxes/alice/registrations"),
    samplePage("registration", active),
    samplePage("attempts", `${active}/attempts`)
  ]
}

const cabinets = async (base: string): Promise<ReadonlyArray<SamplePage>> => {
  const document = `<cabinet><title>All the post</title>${
    ["alice", "bob"].map((name) => `<mailbox href="${base}/mailboxes/${name}"/>`).join("")
  }</cabinet>`
  const path = made(await postXml(base, "/cabinets", document, asAdmin))
  return [samplePage("cabinets", "/cabinets"), samplePage("cabinet", path)]
}

/** A session at its first question, and one with an answer. */
const sessions = async (base: string): Promise<ReadonlyArray<SamplePage>> => {
  const begun = made(await postXml(base, "/sessions", "<answer continue=\"true\"/>"))

  const body = "<answer continue=\"true\">Sir Robin of Camelot</answer>"
  const headers = { "content-type": "application/xml" }
  const name = await send(base, `${begun}/name`, { method: "PUT", headers, body })
  expectStatus(name, 200, 201, 303)
  const put = async (step: string, answer: string): Promise<string> => {
    const text = `<answer continue="true">${answer}</answer>`
    const sent = await send(base, `${begun}/${step}`, { method: "PUT", headers, body: text })
    expectStatus(sent, 200, 201, 303)
    return `${begun}/${step}`
  }
  const quest = await put("quest", "To seek the Grail")
  const hard = await put("hard_question", "Assur")
  return [
    samplePage("bridge", "/cross_bridge"),
    samplePage("sessions", "/sessions"),
    samplePage("session", begun),
    samplePage("answer", `${begun}/name`),
    samplePage("answer-quest", quest),
    samplePage("answer-hard", hard),
    samplePage("question-name", "/questions/name_question"),
    samplePage("questions", "/questions/quest_question?name=Sir%20Robin"),
    samplePage("question-hard", "/questions/hard_question?name=Robin&quest=Grail")
  ]
}

const names = ["Ada Lovelace", "Ben Bitdiddle", "Cy D. Fect", "Dame Shirley", "Emmy Noether"]

/** Quotes, customers for two pages, and a query. */
const rows = async (base: string): Promise<ReadonlyArray<SamplePage>> => {
  const put = async (path: string, type: string, body: string): Promise<Answer> => {
    const headers = { ...asAdmin, "content-type": type }
    return expectStatus(await send(base, path, { method: "PUT", headers, body }), 200, 201, 202)
  }
  const xml = "application/xml"
  await put(
    "/quotes/ACME",
    xml,
    "<quote><price currency=\"USD\">12.50</price><name>Acme</name></quote>"
  )
  await put("/quotes/NORD", xml, "<quote><price currency=\"NOK\">1203.0075</price></quote>")
  const table = names.map((name, at) => `c${at},${name},${18 + 9 * at}`)
  const load = await put("/customers", "text/csv", `id,name,age\n${table.join("\n")}\n`)
  const document = `<query on="customers"><title>Of age</title><all>
<where field="age" op="ge" value="21"/><where field="name" op="contains" value="e"/></all></query>`
  const answer = await postXml(base, "/queries", document, asAdmin)
  const query = made(answer)
  return [
    samplePage("quotes", "/quotes"),
    samplePage("quote", "/quotes/ACME"),
    samplePage("customers", "/customers?agemin=21&return=name+age&limit=2"),
    samplePage("customer", "/customers/c1"),
    samplePage("load", pathOf(load.headers.get("location"))),
    samplePage("queries", "/queries"),
    samplePage("query", query),
    samplePage("query-result", `/customers?query=${encodeURIComponent(query)}`)
  ]
}

const accounts = async (base: string): Promise<ReadonlyArray<SamplePage>> => {
  const document = "<account><name>carla</name><role>quotes</role></account>"
  const created = expectStatus(await postXml(base, "/accounts", document, asAdmin), 201)
  expectStatus(created, 201)
  if (childOf(parseXml(created.text), "name").text !== "carla") throw new Error("another account")
  return [
    samplePage("accounts", "/accounts"),
    samplePage("account", "/accounts/carla")
  ]
}

/** The pages that need no content. */
const fixedPages: ReadonlyArray<SamplePage> = [
  samplePage("home", "/"),
  samplePage("home-tour", "/?mailbox=alice"),
  samplePage("problems", "/problems"),
  samplePage("problem", "/problems/malformed"),
  samplePage("docs", "/docs"),
  samplePage("docs-concepts", "/docs/concepts"),
  samplePage("docs-recipes", "/docs/how-to/recipes"),
  samplePage("docs-settings", "/docs/reference/settings"),
  samplePage("docs-module", "/docs/modules/http"),
  samplePage("docs-search", "/docs?q=push+registration"),
  samplePage("docs-search-empty", "/docs?q=xyzzy"),
  samplePage("docs-api", "/docs/api"),
  samplePage("docs-api-registrations", "/docs/api/registrations"),
  samplePage("not-found", "/nothing/here", { status: 404 }),
  samplePage("malformed", "/customers?agemin=old", { status: 400 })
]

/** Fills the service at `base`; returns every kind of page, most as an admin sees it. */
export const createSamplePages = async (base: string): Promise<ReadonlyArray<SamplePage>> => {
  const posts = await mailboxes(base)
  const content = [
    ...posts,
    ...await files(base),
    ...await outgoing(base),
    ...await registrations(base),
    ...await cabinets(base),
    ...await sessions(base),
    ...await rows(base),
    ...await accounts(base)
  ]
  const notification = posts.find(({ name }) => name === "notification")?.path ?? ""
  return [...fixedPages, ...content, ...await administrationPages(base, notification)]
}

/** The path of a GET operation whose answer may be a page, as `/openapi.json` names it. */
const htmlPaths = (document: unknown): ReadonlyArray<string> => {
  // The service's own document, which test/http/openapi.test.ts checks.
  const { paths } = document as {
    readonly paths: Readonly<
      Record<string, {
        readonly get?: {
          readonly responses: Readonly<Record<string, { readonly content?: object }>>
        }
      }>
    >
  }
  return Object.entries(paths)
    .filter(([, { get }]) => "text/html" in (get?.responses["200"]?.content ?? {}))
    .map(([path]) => path)
}

/** The paths of pages of which `pages` has no sample. */
export const pathsWithoutSample = (
  document: unknown,
  pages: ReadonlyArray<SamplePage>
): ReadonlyArray<string> => {
  const paths = htmlPaths(document)
  const patternOf = (path: string) => new RegExp(`^${path.replaceAll(/\{[^}]*\}/g, "[^/]+")}$`)
  // A path without parameters is never the example of one with them.
  const sampled = new Set(pages.map(({ path }) => {
    const { pathname } = new URL(path, "http://here.test")
    return paths.find((one) => one === pathname) ??
      paths.find((one) => patternOf(one).test(pathname))
  }))
  return paths.filter((path) => !sampled.has(path))
}
