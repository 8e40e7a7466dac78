/** `/mailboxes`: opening one (A9), and the list of one's own (protocol §1.2). */
import { Effect } from "effect"
import type { MailboxMessage, MailboxReply, MailboxView } from "../../actors/mailbox/protocol.ts"
import { isRefusal } from "../../runtime/index.ts"
import { type Call, type HandlerAnswer, inputOf, queryOf, shown } from "../call.ts"
import { fail, type HandlerFailure, refused } from "../failures.ts"
import { isSlug, requireAccount } from "../identity.ts"
import { askedAtOnceMax, pageEntriesDefault, pageEntriesMax, slugCharsMax } from "../limits.ts"
import { askFor, type Service, uri } from "../service.ts"
import { element } from "../xml.ts"
import { forgetTaken, newSecrets, ownersTable } from "./owner.ts"
import { form } from "../html/forms.ts"
import { openForm, ownPage, secretsPage } from "./pages.ts"
import { linked, mailboxRefNamed } from "./reader.ts"
import { defaultRetention, type FieldReader, fieldsOf } from "./settings.ts"
import { mailboxDocument, parseSettings } from "./settings.ts"

/** The Slug field, which is percent-encoded (RFC 5023 §9.7). */
const slugOf = (call: Call): string | undefined => {
  const field = call.request.headers.get("slug")?.trim()
  if (field === undefined || field === "") return undefined
  try {
    return decodeURIComponent(field)
  } catch {
    return field
  }
}

/** The wished-for name, or one that the service picks: 32 hexadecimal digits, at random. */
const nameOf = (call: Call, field: FieldReader): Effect.Effect<string, HandlerFailure> => {
  const name = field("name") ?? slugOf(call) ??
    Buffer.from(call.ids.id("mailbox"), "base64url").toString("hex")
  return isSlug(name)
    ? Effect.succeed(name)
    : Effect.fail(fail(
      "unprocessable",
      `name must be small letters, digits and hyphens, not a hyphen first, at most ${slugCharsMax}`
    ))
}

/** A9: the name goes onto the account's list first, so that no mailbox is ever missing there. */
export const postMailboxes = (service: Service) =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const account = yield* requireAccount(service, call)
    const field = fieldsOf(yield* inputOf(call, "mailbox", { form: true, mayBeEmpty: true }))
    const place = mailboxRefNamed(service, yield* nameOf(call, field))
    const settings = parseSettings(field, service.settings)
    if (!settings.ok) return yield* fail("unprocessable", settings.fault)
    const { hashes, secrets } = newSecrets(place, call.ids)
    const key = `${account.name}/${place.name}`
    yield* service.records.write([{ table: ownersTable, key, value: "" }])
    const message: MailboxMessage = {
      _tag: "Create",
      requestId: call.ids.id("request"),
      owner: account.name,
      settings: settings.value,
      ...hashes
    }
    const reply = yield* askFor<MailboxReply>(service, place.to, message)
    if (isRefusal(reply)) {
      yield* Effect.ignore(forgetTaken(service, account.name, place))
      return yield* reply.reason === "Taken"
        ? linked(fail("conflict", reply.detail ?? `the name ${place.name} is taken`), place)
        : refused(reply)
    }
    return shown({
      title: settings.value.title ?? place.name,
      tree: mailboxDocument(place.href, settings.value, secrets),
      body: () => secretsPage(place.name, place.href, secrets),
      links: [{ rel: "mailbox", href: place.href }]
    }, { status: 201, headers: [["Location", place.href], ["Cache-Control", "no-store"]] })
  })

interface Paging {
  readonly limit: number
  readonly after: string | undefined
}

const pagingOf = Effect.fnUntraced(function*(
  call: Call
): Effect.fn.Return<Paging, HandlerFailure> {
  const fields = yield* queryOf(call)
  const text = fields.get("limit") ?? String(pageEntriesDefault)
  const limit = Number(text)
  if (!/^\d{1,4}$/.test(text) || limit < 1 || limit > pageEntriesMax) {
    return yield* fail("malformed", `limit must be a whole number from 1 to ${pageEntriesMax}`)
  }
  const after = fields.get("after")
  if (after !== undefined && !isSlug(after)) return yield* fail("malformed", "after is no name")
  return { limit, after }
})

interface Owned {
  readonly name: string
  readonly view: MailboxView
}

/** Of these names those that are open mailboxes of the account. */
const ownedOf = (service: Service, account: string, names: ReadonlyArray<string>) =>
  Effect.forEach(names, (name) => {
    const message: MailboxMessage = { _tag: "Describe", reader: { account } }
    const { to } = mailboxRefNamed(service, name)
    return Effect.map(
      askFor<Extract<MailboxReply, { readonly _tag: "Described" }>>(service, to, message),
      (reply): ReadonlyArray<Owned> =>
        isRefusal(reply) || !reply.view.isOwner ? [] : [{ name, view: reply.view }]
    )
  }, { concurrency: askedAtOnceMax }).pipe(Effect.map((found) => found.flat()))

/** The caller's own mailboxes, by name. */
export const getMailboxes = (service: Service) =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const account = yield* requireAccount(service, call)
    const { after, limit } = yield* pagingOf(call)
    const prefix = `${account.name}/`
    const owned: Array<Owned> = []
    let key = after === undefined ? undefined : prefix + after
    let more = true
    while (more && owned.length <= limit) {
      const from = key === undefined ? {} : { after: key }
      const rows = yield* service.records.range(ownersTable, { prefix, limit: limit + 1, ...from })
      more = rows.length > limit
      key = rows.at(-1)?.key
      const names = rows.map((row) => row.key.slice(prefix.length))
      owned.push(...yield* ownedOf(service, account.name, names))
    }
    const listed = owned.slice(0, limit)
    const last = listed.at(-1)?.name
    const next = owned.length > limit && last !== undefined
      ? [{
        rel: "next",
        href: uri(service, `/mailboxes?after=${last}&limit=${limit}`),
        title: "More mailboxes"
      }]
      : []
    return shown({
      title: "Your mailboxes",
      tree: element(
        "mailboxes",
        {},
        ...listed.map(({ name, view }) =>
          element("mailbox", {
            href: mailboxRefNamed(service, name).href,
            title: view.settings.title ?? "",
            notifications: view.notifications
          })
        )
      ),
      links: next,
      body: () =>
        ownPage(listed.map(({ name, view: { notifications, settings } }) => ({
          href: mailboxRefNamed(service, name).href,
          title: settings.title ?? "",
          notifications
        }))),
      forms: form(openForm(defaultRetention(service.settings)))
    }, { headers: [["Vary", "Authorization"], ["Cache-Control", "private, no-cache"]] })
  })
