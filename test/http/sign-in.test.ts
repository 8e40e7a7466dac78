/** Browsers that sign in (protocol §7): the form, the cookie, its sessions, and CSRF. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { wrongTokensMax } from "../../actors/limits.ts"
import { sessionCookieIn, setSessionCookie,
  unsetSessionCookie } from "../../http/auth/credentials/index.ts"
import { childrenOf } from "../../http/formats/xml/index.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { returnPathOf } from "../../http/resources/sign-in/return-path.ts"
import { adminToken, type Answered, type Harness, type Sending, startService } from "./harness.ts"

const admin = `admin:${adminToken}`
const formType = "application/x-www-form-urlencoded"
const page = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

let service: Harness
beforeAll(async () => {
  service = await startService(resourceTable, { trustedProxies: ["127.0.0.0/8"] })
})
afterAll(() => service.close())

const open = async (name: string): Promise<string> => {
  const body = `<account><name>${name}</name></account>`
  const created = await service.send("POST", "/accounts", { basic: admin, body })
  return created.child("token") ?? ""
}

const submit = (
  path: string,
  fields: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {}
): Promise<Answered> =>
  service.send("POST", path, {
    headers: { "Sec-Fetch-Site": "same-origin", ...headers },
    body: new URLSearchParams(fields).toString(),
    type: formType,
    accept: page
  })

/** The Cookie field of a browser after an answer. */
const cookieAfter = (answered: Answered): string =>
  answered.header("set-cookie").split(";")[0] ?? ""

const signIn = async (name: string, token: string, agent = "Lynx/2.9"): Promise<string> => {
  const answered = await submit("/sign-in", { account: name, token }, { "User-Agent": agent })
  expect(answered.status).toBe(303)
  return cookieAfter(answered)
}

const browse = (path: string, cookie: string, options: Sending = {}): Promise<Answered> =>
  service.send("GET", path, {
    accept: page,
    ...options,
    headers: { Cookie: cookie, ...options.headers }
  })

const isSignedIn = async (cookie: string): Promise<boolean> =>
  (await browse("/mailboxes", cookie)).status === 200

const idsOf = async (name: string): Promise<ReadonlyArray<string>> => {
  const listed = await service.send("GET", `/accounts/${name}/browser-sessions`, { basic: admin })
  return childrenOf(listed.xml).map(({ attributes }) => attributes["id"] ?? "")
}

describe("a browser", () => {
  it("signs in by a form, is shown as the account, and signs out", async () => {
    const token = await open("alice")
    const form = await service.send("GET", "/sign-in?return=/outgoing", { accept: page })
    expect([form.status, form.header("cache-control")]).toEqual([200, "no-store"])
    expect(form.text).toContain("<input type=\"hidden\" name=\"return\" value=\"/outgoing\">")
    expect(form.text).toContain("<input type=\"password\" ")
    expect(form.text).toContain("autocomplete=\"current-password\"")
    const fields = { account: "alice", token, return: "/outgoing?status=sent" }
    const signedIn = await submit("/sign-in", fields)
    expect([signedIn.status, signedIn.header("location"), signedIn.header("cache-control")])
      .toEqual([303, `${service.base}/outgoing?status=sent`, "no-store"])
    expect(signedIn.header("set-cookie")).toMatch(
      /^restante-session=alice\.[\w-]{22}\.[\w-]{43}; Path=\/; Max-Age=604800; HttpOnly; Same/
    )
    const cookie = cookieAfter(signedIn)
    const mailboxes = await browse("/mailboxes", cookie)
    expect(mailboxes.status).toBe(200)
    expect(mailboxes.text).toContain("aria-label=\"Sign out alice\"")
    for (const path of ["/", "/cross_bridge", "/problems", "/nothing", "/mailboxes/alice/x"]) {
      expect((await browse(path, cookie)).text).toContain("aria-label=\"Sign out alice\"")
    }
    const again = await browse("/sign-in", cookie)
    expect(again.text).toContain("You are signed in as <b>alice</b>")
    const signedOut = await submit("/sign-out", {}, { Cookie: cookie })
    expect([signedOut.status, signedOut.header("location")])
      .toEqual([303, `${service.base}/sign-out`])
    expect(signedOut.header("clear-site-data")).toBe("\"storage\"")
    expect(signedOut.header("set-cookie")).toMatch(/^restante-session=; Path=\/; Max-Age=0; /)
    expect((await browse("/mailboxes", cookie)).status).toBe(401)
    // It may sign out again, and without a session.
    expect((await submit("/sign-out", {}, { Cookie: cookie })).status).toBe(303)
    expect((await submit("/sign-out", {})).status).toBe(303)
    expect(await idsOf("alice")).toEqual([])
  })

  it("is offered its own mailboxes by the tour, and no step to sign in", async () => {
    const cookie = await signIn("tourist", await open("tourist"))
    const { text: first } = await browse("/", cookie)
    expect(first).toContain("<h3>Open a mailbox</h3>")
    expect(first).not.toContain("Open another mailbox")
    for (const name of ["tour-b", "tour-a"]) {
      const opened = await submit("/mailboxes", { name }, { Cookie: cookie, Origin: service.base })
      expect(opened.status).toBe(201)
    }
    const { text } = await browse("/", cookie)
    expect(text).toContain("<h3>You are signed in</h3>")
    expect(text).not.toContain("<h3>Sign in</h3>")
    expect([...text.matchAll(/href="\/\?mailbox=([^#"]*)#note"/g)].map(([, name]) => name))
      .toEqual(["tour-a", "tour-b"])
    expect(text).toContain("<li id=\"note\">")
    // Opening is the second choice of who has one, and folded.
    const [, step = ""] = /<li id="open">(.*?)<\/li>/s.exec(text) ?? []
    expect(step).toContain("<h3>Choose a mailbox</h3>")
    expect(step).toContain("<summary>Open another mailbox</summary>")
    expect(step.indexOf("tour-a")).toBeLessThan(step.indexOf("<form"))
    expect(step.indexOf("action=\"/mailboxes\"")).toBeGreaterThan(step.indexOf("<summary>"))
    const { text: chosen } = await browse("/?mailbox=tour-b", cookie)
    expect(chosen).toContain("The mailbox for the next steps")
    expect(chosen).toContain("<summary>Open another mailbox</summary>")
    const { text: anonymous } = await service.send("GET", "/", { accept: page })
    expect(anonymous).toContain("<h3>Sign in</h3>")
    expect(anonymous).not.toContain("The browser asks for both")
    expect(anonymous).not.toContain("tour-a")
  })

  it("comes back to the address of its mailbox after a form there", async () => {
    const cookie = await signIn("returning", await open("returning"))
    const sent = { Cookie: cookie, Origin: service.base }
    expect((await submit("/mailboxes", { name: "returned-to" }, sent)).status).toBe(201)
    const href = `${service.base}/mailboxes/returned-to`
    const deposited = await submit("/mailboxes/returned-to", {
      description: "d",
      content: "c"
    }, sent)
    const { pathname } = new URL(deposited.header("location"))
    for (
      const [path, method] of [[`${pathname}/read`, "put"], [pathname, "delete"]] as const
    ) {
      const marked = await submit(path, { method }, sent)
      expect([marked.status, marked.header("location")]).toEqual([303, href])
    }
    expect((await browse("/mailboxes/returned-to", cookie)).text).toContain(
      "There is nothing here."
    )
  })

  it("gets the form again after wrong credentials, without the token that it sent", async () => {
    await open("typo")
    for (
      const fields of [
        { account: "typo", token: "rst_wrong", return: "/quotes" },
        { account: "Not an account", token: "rst_wrong", return: "/quotes" },
        { account: "typo", token: "", return: "/quotes" }
      ]
    ) {
      const answered = await submit("/sign-in", fields)
      expect([answered.status, answered.headers.get("set-cookie")]).toEqual([401, null])
      expect(answered.text).toContain(`value="${fields.account}"`)
      expect(answered.text).toContain("value=\"/quotes\"")
      expect(answered.text).not.toContain("rst_wrong")
      // No dialog of the browser covers the form.
      expect(answered.header("www-authenticate")).toBe("Bearer")
    }
  })

  it("is a guesser after many wrong tokens", async () => {
    const guesser = { "X-Forwarded-For": "203.0.113.9" }
    const guess = (token: string) => submit("/sign-in", { account: "admin", token }, guesser)
    for (let n = 0; n < wrongTokensMax; n += 1) {
      expect((await guess(`guess-${n}`)).status).toBe(401)
    }
    const answered = await guess("another")
    expect([answered.status, Number(answered.header("retry-after")) > 0]).toEqual([429, true])
    // The throttle is that of Basic.
    const basic = { basic: "admin:one-more", headers: guesser }
    expect((await service.send("GET", "/mailboxes", basic)).status).toBe(429)
  })

  it("gets a new secret at each sign-in, and loses the one before", async () => {
    const token = await open("fixed")
    const planted = `restante-session=fixed.${"A".repeat(22)}.${"A".repeat(43)}`
    const first = cookieAfter(
      await submit("/sign-in", { account: "fixed", token }, { Cookie: planted })
    )
    expect(first).not.toBe(planted)
    expect(await isSignedIn(planted)).toBe(false)
    const second = cookieAfter(
      await submit("/sign-in", { account: "fixed", token }, { Cookie: first })
    )
    expect(second).not.toBe(first)
    await expect.poll(() => isSignedIn(first)).toBe(false)
    expect(await isSignedIn(second)).toBe(true)
  })

  it("is anonymous with two cookies, a changed one, and one of nobody", async () => {
    const token = await open("tossed")
    const cookie = await signIn("tossed", token)
    const other = await signIn("admin", adminToken)
    const [, value = ""] = cookie.split("=")
    const [account, id, secret = ""] = value.split(".")
    const changed = secret.startsWith("A") ? `B${secret.slice(1)}` : `A${secret.slice(1)}`
    for (
      const field of [
        `${cookie}; ${other}`,
        `restante-session=${account}.${id}.${changed}`,
        `restante-session=admin.${id}.${secret}`,
        `restante-session=nobody.${id}.${secret}`,
        `__Host-${cookie}`,
        "restante-session=",
        "restante-session=x; theme=dark"
      ]
    ) {
      expect([field, await isSignedIn(field)]).toEqual([field, false])
    }
    expect(await isSignedIn(`theme=dark; ${cookie}; a=b`)).toBe(true)
  })

  it("sends Basic and Bearer with precedence over its cookie", async () => {
    const token = await open("basic")
    const cookie = await signIn("admin", adminToken)
    const asBasic = await browse("/accounts/basic", cookie, { basic: `basic:${token}` })
    expect(asBasic.status).toBe(200)
    expect((await browse("/accounts/admin", cookie, { basic: `basic:${token}` })).status).toBe(403)
    const bearer = { headers: { Authorization: "Bearer wrong" } }
    expect((await browse("/accounts/admin", cookie, bearer)).status).toBe(401)
  })
})

describe("the page to return to", () => {
  const base = "https://box.example.org"

  it.each([
    "/outgoing",
    "/mailboxes/alice?since=2026-01-01T00:00:00Z&limit=3",
    "/customers?return=name+age#row",
    "/%2F%2Fevil.example",
    "/a/https://evil.example"
  ])("may be %s", (path) => expect(returnPathOf(path, base)).toBe(path))

  it.each([
    "//evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "///evil.example",
    "/\t/evil.example",
    "/\n/evil.example",
    "/.//evil.example",
    "/x/..//evil.example",
    "https://evil.example/",
    "https:evil.example",
    "javascript:alert(1)",
    "evil",
    "@evil.example",
    "",
    "/ü",
    "/a b",
    `/${"a".repeat(3000)}`,
    "/sign-out",
    "/sign-in?return=/x"
  ])("is not %.20j", (path) => expect(returnPathOf(path, base)).toBe("/mailboxes"))

  it("stays here, however it is encoded in the request", async () => {
    const token = await open("returner")
    for (const path of ["%2F%2Fevil.example", "%2F%5Cevil.example", "%5C%5Cevil.example"]) {
      const shown = await service.send("GET", `/sign-in?return=${path}`, { accept: page })
      expect(shown.text).not.toContain("evil")
      const answered = await service.send("POST", "/sign-in", {
        headers: { "Sec-Fetch-Site": "same-origin" },
        body: `account=returner&token=${token}&return=${path}`,
        type: formType,
        accept: page
      })
      expect(answered.header("location")).toBe(`${service.base}/mailboxes`)
    }
  })
})

describe("a change by a cookie", () => {
  it("needs a proof that a page of this service caused it", async () => {
    const token = await open("forged")
    const cookie = await signIn("forged", token)
    const post = (headers: Readonly<Record<string, string>>) =>
      service.send("POST", "/mailboxes", { headers: { Cookie: cookie, ...headers } })
    for (
      const headers of [
        {},
        { "Sec-Fetch-Site": "same-site" },
        { "Sec-Fetch-Site": "cross-site" },
        { Origin: "https://evil.example" },
        { Origin: "null" },
        { "Sec-Fetch-Site": "none", Origin: "https://evil.example" }
      ]
    ) {
      expect([headers, (await post(headers)).status]).toEqual([headers, 403])
    }
    for (
      const headers of [
        { "Sec-Fetch-Site": "same-origin" },
        { "Sec-Fetch-Site": "none" },
        { Origin: service.base }
      ]
    ) {
      expect([headers, (await post(headers)).status]).toEqual([headers, 201])
    }
    // Programs need none.
    const basic = { basic: `forged:${token}` }
    expect((await service.send("POST", "/mailboxes", basic)).status).toBe(201)
    expect(
      (await submit("/sign-out", {}, { Cookie: cookie, "Sec-Fetch-Site": "cross-site" })).status
    )
      .toBe(403)
    expect(await isSignedIn(cookie)).toBe(true)
  })

  it("is the account's: what it publishes and deposits belongs to it", async () => {
    const token = await open("author")
    const cookie = await signIn("author", token)
    const headers = { Cookie: cookie, Origin: service.base }
    const published = await service.send("POST", "/content", {
      headers,
      body: "x",
      type: "text/plain"
    })
    expect(published.status).toBe(202)
    const deleted = await service.send("DELETE", published.header("location"), {
      basic: `author:${token}`
    })
    expect(deleted.status).toBe(204)
    const only = "<mailbox><name>members</name><deposit>accounts</deposit></mailbox>"
    await service.send("POST", "/mailboxes", { basic: admin, body: only })
    const note = "<notification><item><description>d</description><url>http://example.org/m" +
      "</url></item></notification>"
    const deposit = (by: Readonly<Record<string, string>>) =>
      service.send("POST", "/mailboxes/members", { headers: by, body: note })
    expect((await deposit({})).status).toBe(401)
    expect((await deposit(headers)).status).toBe(202)
  })
})

describe("a mailbox in a browser", () => {
  it("shows everybody how to deposit, and the way to sign in and return", async () => {
    const token = await open("owner")
    const basic = `owner:${token}`
    const opened = await service.send("POST", "/mailboxes", { basic, headers: { Slug: "deep" } })
    const password = opened.child("password") ?? ""
    const stranger = await service.send("GET", "/mailboxes/deep", { accept: page })
    expect([stranger.status, stranger.headers.get("www-authenticate")]).toEqual([200, null])
    expect(stranger.header("link")).toContain(`<${service.base}/mailboxes/deep>; rel="mailbox"`)
    expect(stranger.text).toContain("Leave a notification here")
    expect(stranger.text).toContain("href=\"/sign-in?return=%2Fmailboxes%2Fdeep\"")
    expect(stranger.text).toContain("Sign in to read")
    expect(stranger.header("vary").split(", ")).toContain("Cookie")
    const cookie = await signIn("owner", token)
    const owner = await browse("/mailboxes/deep", cookie)
    expect([owner.status, owner.header("cache-control")]).toEqual([200, "private, no-store"])
    expect(owner.text).toContain("<h2>Notifications</h2>")
    expect(owner.text).toContain("<h2>Settings</h2>")
    // Another account sees the page for everybody, not a refusal.
    const other = await browse("/mailboxes/deep", await signIn("admin", adminToken))
    expect([other.status, other.text.includes("<h2>Notifications</h2>")]).toEqual([200, false])
    expect(other.text).toContain("You are signed in as <b>admin</b>")
    expect(other.header("link")).toContain("rel=\"mailbox\"")
    // The next browser on the same node gets none of these pages.
    const next = await service.send("GET", "/mailboxes/deep", { accept: page })
    expect(next.text).not.toContain("Sign out")
    // Whoever asks for it is asked for the password of the mailbox, in a dialog.
    const asked = await service.send("GET", "/mailboxes/deep?read=password", { accept: page })
    expect([asked.status, asked.header("www-authenticate")])
      .toEqual([401, "Basic realm=\"mailbox\""])
    const read = { accept: page, basic: `any:${password}` }
    const given = await service.send("GET", "/mailboxes/deep?read=password", read)
    expect([given.status, given.text.includes("<h2>Notifications</h2>")]).toEqual([200, true])
    // Only a browser that is asked for the password must ask for the list again.
    const uri = `${service.base}/mailboxes/deep`
    expect(given.text).toContain("<input type=\"hidden\" name=\"read\" value=\"\">")
    expect(given.text).toContain(`<a href="${uri}?read=&amp;unread=true">`)
    const found = (await browse("/mailboxes/deep?tag=x", cookie)).text
    expect(found).not.toContain("name=\"read\"")
    expect(found).toContain(`<a href="${uri}">all</a>`)
    expect(found).toContain(`<a href="${uri}?unread=true&amp;tag=x">`)
  })

  it("marks nothing as retrieved for a page of another site that embeds it", async () => {
    const token = await open("embedded")
    const basic = `embedded:${token}`
    const body = "<mailbox><name>embedded</name><receipts>retrieved</receipts></mailbox>"
    await service.send("POST", "/mailboxes", { basic, body })
    const content = await service.send("POST", "/content", { body: "x", type: "text/plain" })
    const edit = /<([^>]+)>; rel="edit"/.exec(content.header("link"))?.[1] ?? ""
    const note = `<notification><item><description>d</description><url>${
      content.header("location")
    }</url></item></notification>`
    expect((await service.send("POST", "/mailboxes/embedded", { body: note })).status).toBe(202)
    const cookie = await signIn("embedded", token)
    const receipts = async () =>
      childrenOf((await service.send("GET", `${edit}/receipts`)).xml).length
    for (
      const headers of [
        { "Sec-Fetch-Site": "same-site", "Sec-Fetch-Dest": "image" },
        { "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document" },
        { "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "image" }
      ]
    ) {
      const embedded = await browse("/mailboxes/embedded", cookie, { headers })
      expect(embedded.status).toBe(200)
    }
    expect(await receipts()).toBe(0)
    await browse("/mailboxes/embedded", cookie, {
      headers: { "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "document" }
    })
    await expect.poll(receipts).toBe(1)
  })
})

describe("a page that needs an account", () => {
  it("is 401 with the form that signs in and returns, and without a dialog", async () => {
    for (const path of ["/mailboxes", "/outgoing?status=sent", "/accounts/admin"]) {
      const answered = await service.send("GET", path, { accept: page })
      expect([path, answered.status]).toEqual([path, 401])
      expect(answered.header("www-authenticate")).toBe("Bearer")
      expect(answered.text).toContain("action=\"/sign-in\"")
      const shown = path.replaceAll("&", "&amp;")
      expect(answered.text).toContain(`name="return" value="${shown}"`)
    }
    // A script of a page, and a stream that it opens, get no dialog either.
    const stream = await service.send("GET", "/accounts", {
      headers: { "Sec-Fetch-Site": "same-origin" },
      accept: "text/event-stream"
    })
    expect(stream.header("www-authenticate")).toBe("Bearer")
  })

  it("gives programs both challenges, and no form", async () => {
    for (const accept of ["application/xml", "application/json", "text/plain", "*/*"]) {
      const answered = await service.send("GET", "/mailboxes", { accept })
      expect([answered.status, answered.header("www-authenticate")])
        .toEqual([401, "Basic realm=\"restante\", Bearer"])
      expect(answered.text).not.toContain("form")
    }
  })

  it("does not repeat the secret of a path in its link", async () => {
    const answered = await service.send("GET", "/mailboxes/nothing~here", { accept: page })
    expect(answered.status).toBe(404)
    expect(answered.text).not.toContain("return=")
  })
})

describe("the pages of a browser that is signed in", () => {
  it("stay out of caches, and differ from those of others", async () => {
    const token = await open("cached")
    const cookie = await signIn("cached", token)
    const anonymous = await service.send("GET", "/problems", { accept: page })
    expect(anonymous.header("cache-control")).toBe("no-cache")
    const own = await browse("/problems", cookie)
    for (const { headers } of [anonymous, own]) expect(headers.get("vary")).toContain("Cookie")
    expect(own.header("cache-control")).toBe("private, no-store")
    expect(own.etag).not.toBe(anonymous.etag)
    // A page from before the sign-in is not the current one.
    const changed = await browse("/problems", cookie, {
      headers: { "If-None-Match": anonymous.etag }
    })
    expect(changed.status).toBe(200)
    const same = await browse("/problems", cookie, { headers: { "If-None-Match": own.etag } })
    expect([same.status, same.header("cache-control")]).toEqual([304, "private, no-store"])
    const head = await service.send("HEAD", "/mailboxes", {
      accept: page,
      headers: { Cookie: cookie }
    })
    const whole = await browse("/mailboxes", cookie)
    expect([head.status, head.etag, head.text]).toEqual([200, whole.etag, ""])
    // Other representations name nobody, and are the same for everybody.
    const xml = { accept: "application/xml" }
    expect((await browse("/problems", cookie, xml)).etag)
      .toBe((await service.send("GET", "/problems", xml)).etag)
  })
})

describe("the browsers of an account", () => {
  it("are listed without secrets, and signed out one by one or all at once", async () => {
    const token = await open("many")
    const one = await signIn("many", token, `Mozilla/5.0 <b>${"x".repeat(500)}`)
    const two = await signIn("many", token)
    const path = "/accounts/many/browser-sessions"
    const listed = await service.send("GET", path, { basic: `many:${token}` })
    const shown = childrenOf(listed.xml).map(({ attributes }) => attributes)
    expect(shown).toHaveLength(2)
    expect(shown[0]?.["agent"]).toMatch(/^Mozilla\/5\.0 <b>x+$/)
    expect(shown[0]?.["agent"]?.length).toBe(160)
    expect(shown[1]).toMatchObject({ from: "127.0.0.1", agent: "Lynx/2.9" })
    for (const cookie of [one, two]) expect(listed.text).not.toContain(cookie.split(".")[2])
    const mine = await browse(path, two, { accept: "application/json" })
    expect(mine.json).toMatchObject({
      "browser-session": [expect.not.objectContaining({ current: "true" }), { current: "true" }]
    })
    const html = await browse(path, two)
    expect(html.text).toContain("this browser")
    expect(html.text).toContain("Mozilla/5.0 &lt;b&gt;xxx")
    expect((await service.send("GET", path, { basic: `admin:${adminToken}` })).status).toBe(200)
    const other = await open("curious")
    expect((await service.send("GET", path, { basic: `curious:${other}` })).status).toBe(403)
    expect((await service.send("GET", path)).status).toBe(401)

    const [first, second] = shown.map(({ id }) => `${path}/${id}`)
    expect((await service.send("GET", first ?? "", { basic: `many:${token}` })).status).toBe(200)
    const gone = await submit(first ?? "", { method: "delete" }, { Cookie: two })
    expect([gone.status, gone.header("location")]).toEqual([303, `${service.base}${path}`])
    expect([await isSignedIn(one), await isSignedIn(two)]).toEqual([false, true])
    const again = { basic: `many:${token}` }
    expect((await service.send("DELETE", first ?? "", again)).status).toBe(404)
    expect((await submit(first ?? "", { method: "delete" }, { Cookie: two })).status).toBe(303)
    const own = await submit(second ?? "", { method: "delete" }, { Cookie: two })
    expect(own.header("location")).toBe(`${service.base}/sign-out`)
    expect(await isSignedIn(two)).toBe(false)

    const three = await signIn("many", token)
    const four = await signIn("many", token)
    const all = await submit(path, { method: "delete" }, { Cookie: three })
    expect(all.header("location")).toBe(`${service.base}/sign-out`)
    expect([await isSignedIn(three), await isSignedIn(four)]).toEqual([false, false])
    expect((await service.send("DELETE", path, again)).status).toBe(204)
    expect(await idsOf("many")).toEqual([])
  })

  it("have the scopes of their token", async () => {
    const token = await open("scoped")
    const basic = `scoped:${token}`
    await service.send("POST", "/mailboxes", { basic, headers: { Slug: "scoped" } })
    const made = await service.send("POST", "/accounts/scoped/token", {
      basic,
      body: "<token scope=\"read mailbox:scoped\"/>"
    })
    const cookie = await signIn("scoped", made.text.replace(/<[^>]*>/g, "").trim())
    const read = await browse("/mailboxes/scoped", cookie)
    expect([read.status, read.text.includes("<h2>Notifications</h2>")]).toEqual([200, true])
    const refused = await browse("/accounts/scoped/tokens", cookie)
    expect([refused.status, refused.text]).toEqual([403, expect.stringContaining("admin")])
    const change = await submit("/mailboxes", { name: "other" }, { Cookie: cookie })
    expect(change.status).toBe(403)
    // Whatever its scopes, a browser signs out.
    expect((await submit("/sign-out", {}, { Cookie: cookie })).status).toBe(303)
    expect(await idsOf("scoped")).toEqual([])
  })

  it("are signed out when their token is revoked, and when the account is removed", async () => {
    const token = await open("revoked")
    const basic = `revoked:${token}`
    const made = await service.send("POST", "/accounts/revoked/token", { basic })
    const second = made.text.replace(/<[^>]*>/g, "").trim()
    const [one, two] = [await signIn("revoked", token), await signIn("revoked", second)]
    expect([await isSignedIn(one), await isSignedIn(two)]).toEqual([true, true])
    await service.send("DELETE", made.header("location"), { basic })
    expect([await isSignedIn(one), await isSignedIn(two)]).toEqual([true, false])
    expect(await idsOf("revoked")).toHaveLength(1)
    await service.send("DELETE", "/accounts/revoked", { basic: admin })
    expect(await isSignedIn(one)).toBe(false)
  })
})

describe("the cookie", () => {
  const issued = { account: "alice", sessionId: "i".repeat(22), secret: "s".repeat(43) }
  const value = `alice.${issued.sessionId}.${issued.secret}`

  it("has the prefix __Host- and Secure with TLS", () => {
    const base = "https://box.example.org"
    expect(setSessionCookie(base, issued)).toEqual([
      "Set-Cookie",
      `__Host-restante-session=${value}; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax; Secure`
    ])
    expect(unsetSessionCookie(base)[1])
      .toBe("__Host-restante-session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax; Secure")
    expect(sessionCookieIn(`__Host-restante-session=${value}`, base)).toMatchObject({
      account: "alice",
      sessionId: issued.sessionId
    })
    // Another host of the site can set this one.
    expect(sessionCookieIn(`restante-session=${value}`, base)).toBeUndefined()
  })

  it("is in no log", async () => {
    const token = await open("logged")
    const cookie = await signIn("logged", token)
    await browse("/mailboxes", cookie)
    await submit("/sign-out", {}, { Cookie: cookie })
    const audit = await service.send("GET", "/audit?account=logged", { basic: admin })
    expect(audit.text).toContain("\"sign-in\"")
    expect(audit.text).toContain("\"sign-out\"")
    const logged = JSON.stringify(service.accesses) + audit.text
    expect(logged).toContain("/sign-in")
    expect(logged).not.toContain(cookie.split(".")[2])
    expect(logged).not.toContain(token)
  })
})

it("Area B does not depend on a cookie", async () => {
  const cookie = `restante-session=alice.${"i".repeat(22)}.${"s".repeat(43)}`
  const begun = await service.send("POST", "/sessions", {
    headers: { Cookie: cookie, Origin: service.base },
    body: "<answer continue=\"true\">yes</answer>"
  })
  expect(begun.status).toBe(201)
  const put = await service.send("PUT", `${begun.header("location")}/name`, {
    headers: { Cookie: cookie, Origin: service.base },
    body: "<answer>Arthur</answer>"
  })
  expect(put.status).toBe(201)
})
