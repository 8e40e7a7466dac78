/** Which URIs are the service's own, and what they name. */
import { describe, expect, it } from "vitest"
import { linksUnder } from "../../actors/links.ts"

const { contentOf, isOwn, mailboxOf } = linksUnder("http://post.test:8080")
const base = "http://post.test:8080"

describe("an own URI", () => {
  it.each([
    ["/mailboxes/alice", undefined],
    ["/mailboxes/alice?x=1#f", undefined],
    ["/mailboxes/alice~secret-1", "secret-1"],
    ["/mailboxes/%61lice", undefined],
    ["/%6dailbo%78es/alic%65%7Esecret%2d1", "secret-1"],
    ["/x/../mailboxes/alice", undefined]
  ])("%s names the mailbox, however it is spelled", (path, secret) => {
    for (const uri of [`${base}${path}`, `HTTP://POST.test:8080${path}`]) {
      expect(isOwn(uri)).toBe(true)
      expect(mailboxOf(uri)).toEqual({ name: "alice", secret })
    }
  })

  it.each([
    "",
    "/",
    "/mailboxes",
    "/mailboxes/",
    "/mailboxes/alice/",
    "/mailboxes/Alice",
    "/mailboxes%2falice",
    "/mailboxes/alice%2f..",
    "/mailboxes/alice%20",
    "/mailboxes/%2561lice",
    "/mailboxes/alice/notifications/1",
    "/content/aaaaaaaa"
  ])("%s names none", (path) => {
    expect(isOwn(`${base}${path}`)).toBe(true)
    expect(mailboxOf(`${base}${path}`)).toBeUndefined()
  })

  it("may name content, without the secret that would change it", () => {
    expect(contentOf(`${base}/content/aaaaaaaaaaaaaaaaaaaaa%41`)).toBe("aaaaaaaaaaaaaaaaaaaaaA")
    expect(contentOf(`${base}/content/aaaaaaaaaaaaaaaaaaaaaa~secret`)).toBeUndefined()
  })
})

describe("with an origin of its own, content", () => {
  const links = linksUnder(base, "http://content.test")
  const id = "aaaaaaaaaaaaaaaaaaaaaA"

  it("is known under both origins, and nothing else under the second", () => {
    expect(links.contentOf(`http://content.test/content/${id}`)).toBe(id)
    expect(links.contentOf(`${base}/content/${id}`)).toBe(id)
    expect(links.contentOf(`http://other.test/content/${id}`)).toBeUndefined()
    expect(links.isOwn("http://content.test/mailboxes/alice")).toBe(true)
    expect(links.mailboxOf("http://content.test/mailboxes/alice")).toBeUndefined()
    expect(links.mailboxOf(`${base}/mailboxes/alice`)).toMatchObject({ name: "alice" })
    expect(contentOf(`http://content.test/content/${id}`)).toBeUndefined()
  })
})

it.each([
  "http://post.test/mailboxes/alice",
  "http://post.test:80801/mailboxes/alice",
  "https://post.test:8080/mailboxes/alice",
  "http://post.test.:8080/mailboxes/alice",
  "http://post.test:8080.evil.test/mailboxes/alice",
  "http://post.test:8080@evil.test/mailboxes/alice",
  "http://other.test:8080/mailboxes/alice",
  "/mailboxes/alice",
  "mailbox"
])("%s is another's", (uri) => {
  expect(isOwn(uri)).toBe(false)
  expect(mailboxOf(uri)).toBeUndefined()
})
