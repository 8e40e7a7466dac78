/** Web Push (RFC 8291, RFC 8292), checked by a browser's part of other code, and by the RFC. */
import { createECDH } from "node:crypto"
import { describe, expect, it } from "vitest"
import { webPushBytesMax, webPushOverheadBytes, webPushRecordBytes } from "../../actors/limits.ts"
import { linksUnder } from "../../actors/links.ts"
import { formatCursor } from "../../actors/mailbox/cursor.ts"
import { encodeItem } from "../../actors/mailbox/log-item.ts"
import { browserDocument, deletedBrowserDocument } from "../../actors/registration/push-document.ts"
import { browserRequest, encryptPush, Vapid } from "../../actors/registration/web-push.ts"
import { notificationDocuments } from "../../http/documents.ts"
import { testApplicationServerKey, testVapid } from "./dependencies.ts"
import { browserOf, decryptPush, newBrowser, verifyVapid } from "./web-push.ts"

const nowMs = Date.UTC(2026, 0, 1)
const endpoint = "https://push.example.net:8443/push/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV"

/** RFC 8291 appendix A. */
const example = {
  plaintext: "V2hlbiBJIGdyb3cgdXAsIEkgd2FudCB0byBiZSBhIHdhdGVybWVsb24",
  senderPrivate: "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw",
  receiver: {
    d: "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94",
    p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIA"
      + "iw4",
    auth: "BTBZMqHH6r4Tts7J_aSIgg"
  },
  salt: "DGv6ra1nlYgDCS1FRnbzlw",
  body: "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vC"
    + "YLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXL"
    + "WyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
}

describe("the encryption of a push", () => {
  const content = Buffer.from(example.plaintext, "base64url").toString()

  it("is that of the RFC's example", () => {
    const privateKey = createECDH("prime256v1")
    privateKey.setPrivateKey(Buffer.from(example.senderPrivate, "base64url"))
    const body = encryptPush(content, example.receiver, { privateKey, salt: example.salt })
    expect(body.toString("base64url")).toBe(example.body)
  })

  it("is opened by the browser, as the RFC's example is, and by no other one", async () => {
    const receiver = await browserOf(example.receiver)
    expect(await decryptPush(receiver, Buffer.from(example.body, "base64url"))).toBe(content)
    const browser = await newBrowser()
    for (const text of ["", "ü 🍉", "x".repeat(webPushBytesMax)]) {
      const body = encryptPush(text, browser)
      expect(body).toHaveLength(Buffer.byteLength(text) + webPushOverheadBytes)
      expect(body.length).toBeLessThanOrEqual(webPushRecordBytes)
      expect(await decryptPush(browser, body)).toBe(text)
    }
    const other = { ...await newBrowser(), auth: browser.auth }
    await expect(decryptPush(other, encryptPush("secret", browser))).rejects.toThrow()
    const { auth } = await newBrowser()
    await expect(decryptPush({ ...browser, auth }, encryptPush("secret", browser)))
      .rejects.toThrow()
  })

  it("has another key and salt each time", async () => {
    const browser = await newBrowser()
    const [one, other] = [encryptPush("same", browser), encryptPush("same", browser)]
    expect(one.subarray(0, 16)).not.toEqual(other.subarray(0, 16))
    expect(one.subarray(21, 86)).not.toEqual(other.subarray(21, 86))
  })
})

describe("the token of VAPID", () => {
  const claimsOf = (vapid: Vapid, key: string) =>
    verifyVapid(
      vapid.authorizationFor(endpoint, nowMs),
      key,
      "https://push.example.net:8443",
      nowMs
    )

  it("is for the origin of the endpoint, and for 12 hours", async () => {
    expect(await claimsOf(testVapid, testApplicationServerKey)).toEqual({
      aud: "https://push.example.net:8443",
      exp: nowMs / 1000 + 12 * 3_600,
      sub: "mailto:admin@example.org"
    })
  })

  it("names the first contact that is a mailto or https URI, or none", async () => {
    const subjectOf = async (...contacts: ReadonlyArray<string | undefined>) => {
      const vapid = new Vapid(contacts)
      return (await claimsOf(vapid, vapid.useServiceKey("key"))).sub
    }
    expect(await subjectOf(undefined, "https://post.example.org")).toBe("https://post.example.org")
    expect(await subjectOf("tel:+1", "https://post.example.org")).toBe("https://post.example.org")
    expect(await subjectOf(undefined, "http://localhost:8080")).toBeUndefined()
  })

  it("has the key pair of the service's key, the same on every node and after a restart", () => {
    const key = new Vapid([]).useServiceKey("the key of these tests")
    expect(key).toBe(testApplicationServerKey)
    // A change of the derivation would end every subscription of every browser.
    expect(key).toBe(
      "BJOtYq-dv12p6NLczLNLgKqdWkzQmIUcC947vXrtYf76" +
        "Zqr8hrs2nLZwxdAAt4SyAs6amyCiVOTErcwuJozeIUA"
    )
    expect(Buffer.from(key, "base64url")).toHaveLength(65)
    expect(new Vapid([]).useServiceKey("another key")).not.toBe(key)
  })

  it("is not made before the node has the service's key", async () => {
    const vapid = new Vapid([])
    expect(vapid.authorizationFor(endpoint, nowMs)).toBeUndefined()
    const keys = await newBrowser()
    expect(browserRequest(vapid, "{}", "alice=r", endpoint, keys, nowMs)).toBeUndefined()
  })
})

describe("the request to a push service", () => {
  it("has the fields of RFC 8030, and a topic of registration and browser", async () => {
    const [browser, other] = [await newBrowser(), await newBrowser()]
    const requestOf = (registration: string, keys: typeof browser) =>
      browserRequest(testVapid, "{}", registration, endpoint, keys, nowMs)?.headers ?? {}
    const { Topic: topic = "", ...headers } = requestOf("alice=r", browser)
    expect(headers).toEqual({
      "Content-Type": "application/octet-stream",
      "Content-Encoding": "aes128gcm",
      TTL: "604800",
      Urgency: "normal"
    })
    expect(topic).toMatch(/^[A-Za-z0-9_-]{32}$/)
    expect(requestOf("alice=r", browser)["Topic"]).toBe(topic)
    expect(requestOf("bob=r", browser)["Topic"]).not.toBe(topic)
    expect(requestOf("alice=r", other)["Topic"]).not.toBe(topic)
  })
})

describe("the document of a push to a browser", () => {
  const { descriptionOf } = notificationDocuments
  const documentOf = (fragment: string, base = "http://own.test"): Record<string, unknown> => {
    const value = encodeItem(nowMs, "r".repeat(22), "d".repeat(22), fragment)
    const text = browserDocument(
      linksUnder(base),
      "alice",
      { n: 3, value },
      descriptionOf,
      { count: 1, time: formatCursor(nowMs + 5, 4) }
    )
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(webPushBytesMax)
    return JSON.parse(text)
  }
  const described = (text: string): string => `<item><description>${text}</description></item>`

  it("names the mailbox, the cursor and the newest notification", () => {
    expect(documentOf(described("Tea &amp; cake"))).toEqual({
      mailbox: "http://own.test/mailboxes/alice",
      time: expect.stringMatching(/^2026-01-01T00:00:00\.005.*4Z$/),
      notification: {
        href: expect.stringMatching(/^http:\/\/own\.test\/mailboxes\/alice\/notifications\/3/),
        received: "2026-01-01T00:00:00.000Z",
        description: "Tea & cake"
      }
    })
  })

  it.each([
    ["letters", "x"],
    ["characters of four bytes", "🍉"],
    ["characters that JSON escapes", "\\"]
  ])("shortens a long description of %s between characters", (_name, character) => {
    const { notification } = documentOf(described(character.repeat(5_000)))
    const { description } = notification as { readonly description: string } // as written above
    const size = Buffer.byteLength(JSON.stringify(description))
    expect(size).toBeGreaterThan(webPushBytesMax - 500)
    expect(description.replaceAll(character, "")).toBe("…")
  })

  it("leaves out what there is no room for, and what is not there", () => {
    expect(documentOf("<item/>")["notification"]).not.toHaveProperty("description")
    expect(documentOf(described(" "))["notification"]).not.toHaveProperty("description")
    const long = documentOf(described("x"), `http://own.test/${"x".repeat(1_800)}`)
    expect(Object.keys(long)).toEqual(["mailbox", "time"])
  })

  it("says that the mailbox has been removed", () => {
    expect(JSON.parse(deletedBrowserDocument(linksUnder("http://own.test"), "alice", 4, nowMs)))
      .toEqual({
        mailbox: "http://own.test/mailboxes/alice",
        time: expect.stringMatching(/^2026-01-01T00:00:00.*4Z$/),
        deleted: "true"
      })
  })
})
