/**
 * A stranger, and an account that is no better, who leave hostile texts in every field that the
 * service shows: the paths of the resources that show them, by the pattern of each.
 */
import { typefacePath } from "../../../http/formats/html/typeface.ts"
import { receiptDescriptionCharsMax } from "../../../actors/limits.ts"
import { type Answer, asAdmin, expectStatus, linkOf, send } from "../../e2e/client.ts"
import { adminToken, eventually } from "../../e2e/process.ts"
import type { Marks } from "./marks.ts"
import { hostileContents } from "./contents.ts"

/** The paths at which deposits are shown, by the pattern of the resource. */
export type Shown = ReadonlyMap<string, ReadonlyArray<string>>

interface Sending {
  readonly type?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly isAnonymous?: boolean
}

/** The longest texts of fields that have a bound. */
const titleChars = 200
const tokenNameChars = 100
const agentChars = 200
const templateChars = 1_000

const escaped = (text: string): string =>
  text.replaceAll(/[&<>"'\u2028\u2029]/g, (one) => `&#${one.charCodeAt(0)};`)

/** Namespaces that are no markup, by names that resemble those that are, or that browsers know. */
const namespaces = [
  "urn:hostile",
  "http://www.w3.org/1999/xhtml/",
  "HTTP://www.w3.org/1999/xhtml",
  "http://www.w3.org/1999/XHTML",
  "https://www.w3.org/1999/xhtml",
  "http://www.mozilla.org/keymaster/gatekeeper/there.is.only.xul",
  "http://www.w3.org/2005/Atom",
  "http://purl.org/rss/1.0/modules/content/",
  "http://www.w3.org/2001/XInclude",
  "http://www.w3.org/2001/xml-events",
  "http://www.w3.org/2002/xforms",
  "http://www.w3.org/ns/xbl",
  "http://www.mozilla.org/xbl"
]

/** Those that a browser would run: the service must refuse them. */
export const activeNamespaces = [
  "http://www.w3.org/1999/xhtml",
  "http://www.w3.org/2000/svg",
  "http://www.w3.org/1999/XSL/Transform",
  "http://www.w3.org/1998/Math/MathML"
]

export class Depositor {
  private readonly base: string
  private readonly origin: string
  private readonly marks: Marks
  private readonly shown = new Map<string, Array<string>>()

  /** `base` is where the service listens, `origin` its BASE_URL. */
  constructor(base: string, origin: string, marks: Marks) {
    this.base = base
    this.origin = origin
    this.marks = marks
  }

  private show(pattern: string, path: string): string {
    this.shown.set(pattern, [...this.shown.get(pattern) ?? [], path])
    return path
  }

  private async ask(
    method: string,
    path: string,
    body: string,
    { headers = {}, isAnonymous = false, type = "application/xml" }: Sending = {}
  ): Promise<Answer> {
    return send(this.base, path, {
      method,
      body,
      headers: { ...isAnonymous ? {} : asAdmin, "content-type": type, ...headers }
    })
  }

  /** Sends, and returns the path of what was made. */
  private async make(
    method: string,
    path: string,
    body: string,
    sending: Sending = {}
  ): Promise<string> {
    const answer = await this.ask(method, path, body, sending)
    expectStatus(answer, 200, 201, 202, 204)
    return (answer.headers.get("location") ?? path).replace(this.origin, "")
  }

  private text(label: string, charsMax?: number): string {
    return escaped(this.marks.of(label).text(charsMax))
  }

  /** Every way to spell a notification. */
  private notifications(): ReadonlyArray<readonly [body: string, sending: Sending]> {
    const { marks } = this
    const item = (label: string, more = "", url = "http://192.0.2.1/m") =>
      `<item><description>${this.text(label)}</description><url>${url}</url>${more}</item>`
    const raw = marks.of("CDATA").text().replaceAll("]]>", "]] >").replaceAll(/<[?!][^>]*>/g, "")
    const twice = escaped(this.text("a text that is escaped twice"))
    const entities = [...marks.of("character references").text()]
      .map((char) => `&#x${(char.codePointAt(0) ?? 0).toString(16)};`).join("")
    const json = (label: string, more: object = {}) =>
      JSON.stringify({
        item: { description: marks.of(label).text(), url: "http://192.0.2.1/m" },
        ...more
      })
    const linked = marks.of("JSON-LD")
    const inline = marks.of("inlined content")
    const form = new URLSearchParams({
      description: marks.of("form").text(),
      url: "",
      content: `<html>${marks.of("content in a form").text()}`
    })
    return [
      [`<notification>${item("description")}</notification>`, {}],
      ...this.uris().map((uri): readonly [string, Sending] => [
        `<notification>${item("uri", "", escaped(uri))}</notification>`,
        {}
      ]),
      [
        `<notification><item><description><![CDATA[${raw}]]>${twice}${entities}</description>`
        + "<url>http://192.0.2.1/</url></item></notification>",
        {}
      ],
      [
        `<notification>${
          item(
            "with elements of others",
            namespaces.map((one) => this.strange(one)).join("")
          )
        }</notification>`,
        {}
      ],
      [`<notification>${this.plain()}${item("with unknown elements")}</notification>`, {}],
      [
        `<notification>${
          item(
            "with inlined content",
            `<content type="text/html">${escaped(`<html>${inline.text()}`)}</content>`
          ).replace(/<url>.*<\/url>/, "")
        }</notification>`,
        {}
      ],
      ...["text/plain", "application/json"].map((type) =>
        [
          `<notification>${
            item(
              `with a preview of ${type}`,
              `<content type="${type}">${this.text(`preview of ${type}`, 150)}</content>`
            ).replace(/<url>.*<\/url>/, "")
          }</notification>`,
          {}
        ] as const
      ),
      [json("JSON"), { type: "application/json" }],
      [
        json("JSON with more", {
          [`x${"script"}`]: { "@onload": linked.code, text: linked.text() }
        }),
        {
          type: "application/json"
        }
      ],
      [form.toString(), { type: "application/x-www-form-urlencoded" }],
      [
        JSON.stringify({
          "@context": "https://www.w3.org/ns/activitystreams",
          "@id": "http://192.0.2.1/ld",
          "@type": linked.text(100),
          name: linked.text(1000),
          summary: linked.text(),
          content: linked.text(),
          url: `javascript:${linked.code}`,
          actor: `data:text/html,${linked.text()}`
        }),
        { type: "application/ld+json" }
      ]
    ]
  }

  /** URIs that act when a browser takes them for what to load or to open. */
  private uris(): ReadonlyArray<string> {
    const { beacon, code } = this.marks.of("uri of an item")
    return [
      `http://192.0.2.1/?"'><script>${code}</script>%22%3E%3Cscript%3E${code}#]]>--></a>${code}`,
      beacon
    ].map((uri) => encodeURI(uri))
  }

  /** Elements of a namespace that look like those of a page. */
  private strange(namespace: string): string {
    const { beacon, code } = this.marks.of(`elements of ${namespace}`)
    return `<h:html xmlns:h="${namespace}" xmlns:xlink="http://www.w3.org/1999/xlink">`
      + `<h:script src="${beacon}">${code}</h:script><h:script>${code}</h:script>`
      + `<h:body onload="${code}"><h:img src="${beacon}" onerror="${code}"/>`
      + `<h:iframe src="javascript:${code}"/><h:object data="${beacon}"/>`
      + `<h:link rel="stylesheet" href="${beacon}"/><h:style>@import "${beacon}";</h:style>`
      + `<h:svg onload="${code}"><h:use xlink:href="data:image/svg+xml,x"/></h:svg>`
      + `<h:a href="javascript:${code}" xml:base="${beacon}">x</h:a>`
      + `<h:a xlink:href="javascript:${code}">x</h:a>`
      + `<h:include href="${beacon}" parse="xml"/><h:encoded>${this.text("encoded")}</h:encoded>`
      + `<h:content type="html">${this.text("content of type html")}</h:content>`
      + `<h:meta http-equiv="refresh" content="0;url=${beacon}"/></h:body></h:html>`
  }

  /** The same without a namespace. */
  private plain(): string {
    const { beacon, code } = this.marks.of("elements without a namespace")
    return `<script>${code}</script><html><body onload="${code}"><img src="${beacon}"/>`
      + `<script src="${beacon}"/></body></html><svg onload="${code}"/>`
      + `<a href="javascript:${code}" style="background:url(${beacon})">x</a>`
  }

  private async mailbox(name: string, deposit = "anyone"): Promise<string> {
    const title = this.text("title of a mailbox", titleChars)
    return this.make(
      "POST",
      "/mailboxes",
      `<mailbox><name>${name}</name><title>${title}</title><deposit>${deposit}</deposit></mailbox>`
    )
  }

  async mailboxes(): Promise<void> {
    const path = await this.mailbox("hostile")
    this.show("/mailboxes/{mailbox}", `${path}?limit=1000`)
    this.show("/mailboxes", "/mailboxes")
    for (const [body, sending] of this.notifications()) {
      const made = await this.make("POST", path, body, { ...sending, isAnonymous: true })
      this.show("/mailboxes/{mailbox}/notifications/{notification}", made)
      this.show("/mailboxes/{mailbox}/notifications/{notification}", `${made}?remove=true`)
    }
    // A way in that is refused must be refused in each spelling.
    for (const namespace of activeNamespaces) {
      const body = `<notification><item><description>d</description><url>http://192.0.2.1/</url>${
        this.strange(namespace)
      }</item></notification>`
      expectStatus(await this.ask("POST", path, body, { isAnonymous: true }), 422)
    }
    const contains = this.text("what a cabinet contains", titleChars)
    const title = this.text("title of a cabinet", titleChars)
    const cabinet = (query: string) =>
      `<cabinet><title>${title}</title><mailbox href="${path}"/>${query}</cabinet>`
    for (const query of ["", `<query contains="${contains}"/>`]) {
      this.show("/cabinets/{cabinet}", await this.make("POST", "/cabinets", cabinet(query)))
    }
    this.show("/cabinets", "/cabinets")
  }

  /** The templates of a mailbox on its owner's page, and what they make of a webhook. */
  private async webhooks(): Promise<void> {
    const path = await this.mailbox("hostile-webhooks")
    const form = { type: "application/x-www-form-urlencoded" }
    // Braces are placeholders, and a template is one line.
    const template = this.marks.of("a template of webhooks").text(templateChars)
      .replaceAll(/[{}]/g, "").replaceAll(/\p{Cc}/gu, " ")
    const templates = { webhook: `${template}{/title}`, "webhook-tags": template }
    const fields = new URLSearchParams({ sender: "", ...templates }).toString()
    expectStatus(await this.ask("POST", `${path}/webhooks`, fields, form), 303)
    this.show("/mailboxes/{mailbox}", path)
    const webhook = JSON.stringify({ title: this.marks.of("a webhook").text() })
    const made = await this.make("POST", path, webhook, {
      type: "application/json",
      isAnonymous: true
    })
    this.show("/mailboxes/{mailbox}/notifications/{notification}", made)
  }

  /** `recipient`: the origin of a server that refuses with hostile problems. */
  async outgoing(recipient: string): Promise<void> {
    const callback = `${recipient}/${encodeURIComponent(this.marks.of("callback").text(500))}`
    const registrations = "/mailboxes/hostile/registrations"
    const registration = await this.make(
      "POST",
      registrations,
      `<registration><callback>${escaped(callback)}</callback></registration>`
    )
    this.show("/mailboxes/{mailbox}/registrations", registrations)
    this.show("/mailboxes/{mailbox}/registrations/{registration}", registration)
    this.show(
      "/mailboxes/{mailbox}/registrations/{registration}/attempts",
      `${registration}/attempts`
    )
    const to = `${recipient}/${encodeURIComponent(this.marks.of("recipient").text(500))}`
    const sent = await this.make(
      "POST",
      "/outgoing/admin",
      `<notification><to>${escaped(to)}</to><item><description>${
        this.text("outgoing")
      }</description><url>http://192.0.2.1/</url></item></notification>`
    )
    this.show("/outgoing", "/outgoing")
    this.show("/outgoing/{account}", "/outgoing/admin")
    this.show("/outgoing/{account}/pauses", "/outgoing/admin/pauses")
    this.show("/outgoing/{account}/{notification}", sent)
    this.show("/outgoing/{account}/{notification}/attempts", `${sent}/attempts`)
    for (const path of [sent, registration]) {
      await eventually(60_000, `${path} shows the recipient's problem`, async () => {
        const { text } = await send(this.base, path, { headers: asAdmin })
        return text.includes("problem") ? true : undefined
      }, 100)
    }
  }

  async sessions(): Promise<void> {
    const anonymous = { isAnonymous: true }
    const answer = (label: string) => `<answer>${this.text(label)}</answer>`
    const begun = await this.make("POST", "/sessions", "<answer continue=\"true\"/>", anonymous)
    for (const step of ["name", "quest", "hard_question"]) {
      const path = `${begun}/${step}`
      const answered = await this.ask("PUT", path, answer(`answer to ${step}`), anonymous)
      expectStatus(answered, 200, 201, 303, 406)
      this.show(`/sessions/{session}/${step}`, path)
    }
    this.show("/sessions", "/sessions")
    this.show("/sessions/{session}", begun)
    const name = encodeURIComponent(this.marks.of("name in a query").text(1000))
    this.show("/questions/name_question", "/questions/name_question")
    this.show("/questions/quest_question", `/questions/quest_question?name=${name}`)
    this.show("/questions/hard_question", `/questions/hard_question?name=${name}&quest=x`)
    this.show("/cross_bridge", "/cross_bridge")
  }

  async rows(): Promise<void> {
    const { marks } = this
    const json = { type: "application/json" }
    const quote = JSON.stringify({
      price: { currency: "USD", text: "1.50" },
      name: marks.of("name of a quote").text(titleChars)
    })
    await this.make("PUT", "/quotes/HOSTILE", quote, json)
    this.show("/quotes", "/quotes?return=name+price")
    this.show("/quotes/{symbol}", "/quotes/HOSTILE")
    const name = marks.of("name of a customer").text(titleChars)
    const customer = JSON.stringify({ name, age: 30, city: name })
    await this.make("PUT", "/customers/hostile", customer, json)
    this.show("/customers/{customer}", "/customers/hostile")
    const row = `hostile2,"${name.replaceAll("\"", "\"\"")}",30`
    const wrong = `x,${
      this.marks.of("a row that is wrong").text(100).replaceAll(/[",\n]/g, "")
    },old`
    const loaded = await this.make("PUT", "/customers", `id,name,age\n${row}\n${wrong}\n`, {
      type: "text/csv",
      headers: { prefer: "handling=lenient" }
    })
    this.show("/loads/{load}", loaded)
    const query = await this.make(
      "POST",
      "/queries",
      JSON.stringify({
        on: "customers",
        title: marks.of("title of a query").text(titleChars),
        any: {
          where: [
            { field: "name", op: "contains", value: marks.of("value of a query").text(titleChars) },
            { field: "age", op: "ge", value: "1" }
          ]
        }
      }),
      json
    )
    this.show("/queries", "/queries")
    this.show("/queries/{query}", query)
    this.show("/customers", `/customers?query=${encodeURIComponent(query)}`)
  }

  async accounts(): Promise<void> {
    await this.make("POST", "/accounts", `{"name":"hostile","role":["quotes"]}`, {
      type: "application/json"
    })
    const token = await this.make(
      "POST",
      "/accounts/hostile/token",
      JSON.stringify({ name: this.marks.of("name of a token").text(tokenNameChars) }),
      { type: "application/json" }
    )
    this.show("/accounts", "/accounts")
    this.show("/accounts/{account}", "/accounts/hostile")
    this.show("/accounts/{account}/export", "/accounts/admin/export")
    this.show("/accounts/{account}/tokens", "/accounts/hostile/tokens")
    this.show("/accounts/{account}/tokens/{token}", token)
    await this.signIn()
  }

  private async moderation(): Promise<void> {
    for (const blocks of ["/blocks", "/mailboxes/hostile/blocks"]) {
      const reason = this.text("reason of a block", titleChars)
      const body = `<block><host>nobody.example</host><reason>${reason}</reason></block>`
      const pattern = blocks.replace("hostile", "{mailbox}")
      this.show(pattern, blocks)
      this.show(`${pattern}/{block}`, await this.make("POST", blocks, body))
    }
    const notifications = "/mailboxes/{mailbox}/notifications/{notification}"
    const [notification = ""] = this.shown.get(notifications) ?? []
    this.show(`${notifications}/depositor`, `${notification}/depositor`)
    const reason = this.text("reason of a report", titleChars)
    await this.make(
      "POST",
      `${notification}/report`,
      `<report><reason>${reason}</reason></report>`
    )
    const { text } = await send(this.base, "/reports", { headers: asAdmin })
    const [report = ""] = /\/reports\/[^"/?]+/.exec(text) ?? []
    this.show("/reports/{report}", report)
  }

  /** A browser with a hostile name signs in, and so is in the list of those of its account. */
  private async signIn(): Promise<void> {
    const form = new URLSearchParams({ account: "admin", token: adminToken })
    const agent = this.marks.of("name of a browser").text(agentChars)
    const signedIn = await this.ask("POST", "/sign-in", form.toString(), {
      type: "application/x-www-form-urlencoded",
      headers: { "sec-fetch-site": "same-origin", "user-agent": agent },
      isAnonymous: true
    })
    expectStatus(signedIn, 303)
    const sessions = "/accounts/admin/browser-sessions"
    const { text } = await send(this.base, sessions, { headers: asAdmin })
    const [session = ""] = new RegExp(`${sessions}/[^"/?]+`).exec(text) ?? []
    this.show("/accounts/{account}/browser-sessions", sessions)
    this.show("/accounts/{account}/browser-sessions/{browserSession}", session)
    const back = encodeURIComponent(`javascript:${this.marks.of("return of a sign-in").code}`)
    this.show("/sign-in", `/sign-in?return=${back}`)
  }

  /** Content of every type that a browser could run, and its receipts. */
  async contents(): Promise<void> {
    let edit = ""
    for (const content of hostileContents(this.marks)) {
      for (const disposition of content.dispositions) {
        const answer = await send(this.base, "/content", {
          method: "POST",
          body: content.body,
          headers: {
            "content-type": content.type,
            ...disposition === "" ? {} : { "content-disposition": disposition }
          }
        })
        const location = expectStatus(answer, 202).headers.get("location") ?? ""
        this.show("/content/{content}", location.replace(this.origin, ""))
        edit = linkOf(answer, "edit").replace(this.origin, "")
      }
    }
    const content = edit.split("~")[0] ?? ""
    const receipt =
      `<receipt status="received" mailbox="http://192.0.2.1/?x=%22">${"<description>"}${
        this.text("receipt", receiptDescriptionCharsMax)
      }</description></receipt>`
    await this.make("POST", content, receipt, { isAnonymous: true })
    this.show("/content/{content}/receipts", `${edit}/receipts`)
    this.show("/content/{content}/receipts/{receipt}", `${edit}/receipts/1`)
  }

  /** What shows no deposit, but parts of requests. */
  private others(): void {
    const text = encodeURIComponent(this.marks.of("query of the home page").text(500))
    this.show("/", `/?mailbox=${text}`)
    this.show("/problems", "/problems")
    this.show("/problems/{slug}", "/problems/gone")
    this.show("/fonts/{file}", typefacePath)
    const sought = encodeURIComponent(this.marks.of("search of the documentation").text(200))
    this.show("/docs", `/docs?q=${sought}`)
    this.show("/docs/api", "/docs/api")
    this.show("/docs/api/{resource}", "/docs/api/mailboxes")
    this.show("/docs/{page}", "/docs/quick-start")
    this.show("/docs/how-to/{page}", "/docs/how-to/recipes")
    this.show("/docs/modules/{page}", "/docs/modules/http")
    this.show("/docs/pictures/{file}", "/docs/pictures/mailbox.webp")
    this.show("/docs/reference/{page}", "/docs/reference/settings")
    this.show("/cluster/actors/{kind}", "/cluster/actors/mailbox")
    this.show("/cluster/actors/{kind}/{id}", "/cluster/actors/mailbox/hostile")
    for (
      const path of [
        "/openapi.json",
        "/.well-known/security.txt",
        "/style.css",
        "/page.js",
        "/live.js",
        "/list.js",
        "/charts.js",
        "/chips.js",
        "/notify.js",
        "/search.js",
        "/service-worker.js",
        "/manifest.webmanifest",
        "/icon.png",
        "/fonts/OFL.txt",
        "/robots.txt",
        "/favicon.ico",
        "/admin",
        "/cluster",
        "/cluster/history",
        "/cluster/messages",
        "/livez",
        "/readyz",
        "/metrics"
      ]
    ) this.show(path, path)
  }

  /** Makes all deposits. */
  async deposit(recipient: string): Promise<Shown> {
    await this.mailboxes()
    await this.webhooks()
    await this.outgoing(recipient)
    await this.sessions()
    await this.rows()
    await this.accounts()
    await this.moderation()
    await this.contents()
    this.others()
    return this.shown
  }

  /**
   * Opens a mailbox whose notifications are removed once they are retrieved, and deposits one.
   * Returns the paths of both.
   */
  async fleeting(): Promise<readonly [mailbox: string, notification: string]> {
    const settings = "<mailbox><retention>PT0S</retention></mailbox>"
    const mailbox = await this.make("POST", "/mailboxes", settings)
    const item = "<item><description>fleeting</description><url>http://192.0.2.1/m</url></item>"
    return [mailbox, await this.make("POST", mailbox, `<notification>${item}</notification>`)]
  }

  /** What the admin is answered who asks without a browser. */
  async statusOf(path: string): Promise<number> {
    return (await send(this.base, path, { headers: asAdmin })).status
  }

  /** One more notification in the hostile mailbox. */
  async another(): Promise<void> {
    const body = `<notification><item><description>${this.text("a live deposit")}</description>`
      + `<url>http://192.0.2.1/live</url>${this.strange("urn:hostile")}</item></notification>`
    await this.make("POST", "/mailboxes/hostile", body, { isAnonymous: true })
  }
}
