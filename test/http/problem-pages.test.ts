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
    const isFault = problemTypes[slug].status >= 500
    expect(page.includes("<a href=\"/quotes\">Try this page again</a>")).toBe(isFault)
  })

  it("sends a form again, and does not read its address", () => {
    const page = pageFor("overloaded", "POST")
    expect(page).toContain("Go back, and send it again in a minute")
    expect(page).not.toContain("Try this page again")
  })
})
