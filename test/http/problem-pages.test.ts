/** What the pages of problems offer to a reader: advice, links and a search. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { resourceTable } from "../../http/resource-table.ts"
import { problemReply } from "../../http/formats/problem.ts"
import { problemTypes } from "../../http/formats/problem-types.ts"
import { adminToken, type Harness, startService } from "./harness.ts"

let service: Harness

beforeAll(async () => {
  service = await startService(resourceTable)
})
afterAll(() => service.close())

const pageOf = async (path: string, basic?: string) => {
  const sent = await service.send("GET", path, { accept: "text/html", ...basic && { basic } })
  return { status: sent.status, main: /<main[^>]*>(.*)<\/main>/s.exec(sent.text)?.[1] ?? "" }
}

/** The targets of all links in the main part, which must answer. */
const linksIn = (main: string) =>
  [...main.matchAll(/<a href="([^"]+)"/g)].map(([, href = ""]) => href)

describe("the page of a missing address", () => {
  it("says what to do, and has links and a search", async () => {
    const { main, status } = await pageOf("/nothing/here")
    expect(status).toBe(404)
    expect(linksIn(main)).toEqual([
      "/problems/not-found",
      "/sign-in?return=%2Fnothing%2Fhere",
      "/",
      "/mailboxes",
      "/outgoing",
      "/problems/not-found"
    ])
    expect(main).toContain("Compare the address")
    expect(main).toMatch(/<form [^>]*action="\/docs"[^>]*role="search"/)
  })

  it("has only links that lead to a page", async () => {
    const { main } = await pageOf("/nothing/here")
    const basic = `admin:${adminToken}`
    for (const href of [...linksIn(main), "/docs?q=here"]) {
      expect([href, (await pageOf(href, basic)).status < 400]).toEqual([href, true])
    }
  })

  it("repeats no secret of the address, and offers a sign-in to strangers only", async () => {
    const secret = await pageOf("/mailboxes/nobody~secret-part")
    expect(secret.main).not.toContain("secret-part")
    const form = new URLSearchParams({ account: "admin", token: adminToken }).toString()
    const signedIn = await service.send("POST", "/sign-in", {
      type: "application/x-www-form-urlencoded",
      accept: "text/html",
      headers: { "sec-fetch-site": "same-origin" },
      body: form
    })
    const cookie = signedIn.header("set-cookie").split(";")[0] ?? ""
    const sent = await service.send("GET", "/nothing/here", {
      accept: "text/html",
      headers: { cookie }
    })
    expect(sent.text).toContain("Compare the address")
    expect(sent.text).not.toContain("/sign-in?return")
  })
})

describe("the page of any other problem", () => {
  const pageFor = (slug: keyof typeof problemTypes, method = "GET") => {
    const { status, title } = problemTypes[slug]
    const problem = { slug, status, title, detail: undefined, extensions: {} }
    const headers = { get: (name: string) => name === "accept" ? "text/html" : undefined }
    return problemReply(problem, { method, path: "/quotes", headers }, "http://x").body
  }
  const slugs = Object.keys(problemTypes) as ReadonlyArray<keyof typeof problemTypes> // its keys

  it.each(slugs)("%s has a way on", (slug) => {
    const page = pageFor(slug)
    expect(page).toMatch(/<h2>What you can do<\/h2>|<form action="\/sign-in"/)
    expect(page).toContain(`/problems/${slug}`)
    const isRepeatable = problemTypes[slug].status >= 500 || slug === "too-many-requests"
    expect(page.includes("<a href=\"/quotes\">Try this page again</a>")).toBe(isRepeatable)
  })

  const answerFor = (slug: keyof typeof problemTypes, seconds: string, accept = "text/html") => {
    const { status, title } = problemTypes[slug]
    const problem = { slug, status, title, detail: "60 in 60 s are used", extensions: {} }
    const headers = { get: (name: string) => name === "accept" ? accept : undefined }
    return problemReply(problem, { method: "GET", path: "/quotes", headers }, "http://x", [
      ["Retry-After", seconds]
    ]).body
  }

  it.each([
    ["1", "in a few seconds"],
    ["5", "in 5 seconds"],
    ["59", "in 59 seconds"],
    ["60", "in a minute"],
    ["90", "in 90 seconds"],
    ["91", "in 2 minutes"],
    ["1800", "in 30 minutes"],
    ["5400", "in 90 minutes"],
    ["86400", "in 24 hours"]
  ])("says when to try again: after %s s, %s", (seconds, wait) => {
    const page = answerFor("too-many-requests", seconds)
    expect(page).toContain(`Nothing was done. Try again ${wait}.</p>`)
    expect(page).toContain(`<a href="/quotes">Try this page again</a> ${wait}.</li>`)
    expect(page).toContain("too-many-requests</a>: 60 in 60 s are used</p>")
    expect(page).not.toContain("Retry-After")
    expect(answerFor("overloaded", seconds)).toContain(
      `too busy at the moment. Nothing was done. Try again ${wait}.`
    )
  })

  it("says that something was removed, and where to go; programs read what they did", async () => {
    const basic = `admin:${adminToken}`
    const body = "<mailbox><name>removed</name></mailbox>"
    expect((await service.send("POST", "/mailboxes", { basic, body })).status).toBe(201)
    expect((await service.send("DELETE", "/mailboxes/removed", { basic })).status).toBe(204)
    const { main, status } = await pageOf("/mailboxes/removed", basic)
    expect(status).toBe(410)
    expect(main).toContain("What was here has been removed")
    expect(main).not.toMatch(/request it again|Compare the address/)
    expect(linksIn(main)).toEqual(
      ["/problems/gone", "/", "/mailboxes", "/outgoing", "/problems/gone"]
    )
    expect((await pageOf("/problems/gone")).main).toContain("Do not request it again.")
    expect(answerFor("too-many-requests", "9", "application/json")).toBe(
      "{\"type\":\"http://x/problems/too-many-requests\",\"title\":\"Too many requests\"," +
        "\"status\":429,\"detail\":\"60 in 60 s are used\",\"instance\":\"/quotes\"}\n"
    )
  })

  it("sends a form again, and does not read its address", () => {
    const page = pageFor("overloaded", "POST")
    expect(page).toContain("Go back, and send it again in a few seconds")
    expect(page).not.toContain("Try this page again")
  })
})
