/** Cabinets: several mailboxes read as one (protocol §1.5). */
import { Effect } from "effect"
import type { CabinetMessage, CabinetReply,
  CabinetView as Cabinet } from "../../../actors/cabinet/index.ts"
import { cabinetKind } from "../../../actors/index.ts"
import { type Address, address, isActorId } from "../../../runtime/index.ts"
import { type AuthenticatedAccount, callerOf, requireAccount } from "../../auth/index.ts"
import { feedTypes } from "../../formats/index.ts"
import { pageEntriesDefault } from "../../limits.ts"
import { absoluteUri, ask, type Call, emptyAnswer, entityTags, type HandlerAnswer,
  type HandlerFailure, type HeaderList, httpError, isConditional, preconditionsHold, readInput,
  readPageRequest, readQuery, renderedAnswer, renderView, type RequestInput, type ResourceHandler,
  type Route, type Service, viewAnswer, withFormRedisplay } from "../../pipeline/index.ts"
import { spansOf, tellRetrieved } from "../mailboxes/index.ts"
import { enter, leave, listCabinets } from "./cabinet-collection.ts"
import { parseCabinetSince } from "./cabinet-cursor.ts"
import { contentsOf } from "./cabinet-input.ts"
import { type CabinetRequest, type MergedPage, readCabinet } from "./cabinet-merge.ts"
import { cabinetDocument, cabinetPath, changeForm, collectionPath, makeForm,
  pageView } from "./cabinet-views.ts"

const at = (id: string): Address => address(cabinetKind, id)

/** What an owner sees is for that owner. */
const ownersHeaders: HeaderList = [
  ["Vary", "Authorization"],
  ["Cache-Control", "private, no-cache"]
]

/** The id in the path; 404 for what can be none. */
const idOf = ({ parameters }: Call): Effect.Effect<string, HandlerFailure> => {
  const id = parameters.get("cabinet")
  return parameters.secret("cabinet") === undefined && isActorId(id)
    ? Effect.succeed(id)
    : Effect.fail(httpError("not-found"))
}

const unexpected = (reply: CabinetReply): Error => new Error(`a cabinet answered ${reply._tag}`)

/** The cabinet, for its owner; fails with 403, 404 or 410. */
const describe = Effect.fnUntraced(function*(
  service: Service,
  account: AuthenticatedAccount,
  id: string
): Effect.fn.Return<Cabinet, HandlerFailure> {
  const message: CabinetMessage = { _tag: "Describe", caller: callerOf(account) }
  const reply = yield* ask<CabinetReply>(service, at(id), message)
  if (reply._tag !== "Described") throw unexpected(reply)
  return reply.view
})

const create = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const account = yield* requireAccount(service, call)
    const contents = yield* contentsOf(service, yield* readInput(call, "cabinet", { form: true }))
    const id = call.ids.id("cabinet")
    yield* enter(service, account.name, id)
    const requestId = call.ids.id("request")
    const message: CabinetMessage = { _tag: "Create", requestId, owner: account.name, contents }
    const reply = yield* ask<CabinetReply>(service, at(id), message)
    if (reply._tag !== "Created") throw unexpected(reply)
    return viewAnswer(cabinetDocument(service, id, reply.view), {
      status: 201,
      headers: [["Location", absoluteUri(service, cabinetPath(id))], ...ownersHeaders]
    })
  })

/** `limit` and `since` of the query; 400 for what is none. */
const askedOf = Effect.fnUntraced(function*(
  call: Call
): Effect.fn.Return<CabinetRequest, HandlerFailure> {
  const { limit } = yield* readPageRequest(call, () => false)
  const text = (yield* readQuery(call)).get("since")
  const since = text === undefined ? undefined : parseCabinetSince(text)
  if (text !== undefined && since === undefined) {
    return yield* httpError(
      "malformed",
      "since must be the time of an earlier answer, or RFC 3339's"
    )
  }
  return { since, limit }
})

const tellShown = (service: Service, { shown: parts }: MergedPage): void => {
  for (const { place, runs } of parts) {
    tellRetrieved(service, place, runs.flatMap(spansOf))
  }
}

const read = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const account = yield* requireAccount(service, call)
    const id = yield* idOf(call)
    const asked = yield* askedOf(call)
    const cabinet = yield* describe(service, account, id)
    const page = yield* readCabinet(service, cabinet, asked)
    const rendered = renderView(
      {
        _tag: "View",
        status: 200,
        view: pageView(service, id, cabinet, page, asked.limit),
        offered: feedTypes,
        headers: ownersHeaders
      },
      call,
      service.settings.baseUrl
    )
    // As with a mailbox (A11): what was really shown counts as retrieved.
    if (call.request.method === "GET" && rendered.status === 200) tellShown(service, page)
    return renderedAnswer(rendered)
  })

/** The version that the request's conditions hold for, which the actor compares again; or 412. */
const unchanged = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  account: AuthenticatedAccount,
  id: string
): Effect.fn.Return<{ readonly ifVersion?: number }, HandlerFailure> {
  if (!isConditional(call)) return {}
  const cabinet = yield* describe(service, account, id)
  const limit = pageEntriesDefault
  const page = yield* readCabinet(service, cabinet, { since: undefined, limit })
  const tags = entityTags(call, pageView(service, id, cabinet, page, limit), feedTypes)
  if (!preconditionsHold(call, tags)) {
    return yield* httpError("precondition-failed", "the cabinet is not as the condition says")
  }
  return { ifVersion: cabinet.version }
})

/** Replaces the contents by what the body says. */
const replace = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  account: AuthenticatedAccount,
  id: string,
  input: RequestInput
): Effect.fn.Return<Cabinet, HandlerFailure> {
  const contents = yield* contentsOf(service, input)
  const expected = yield* unchanged(service, call, account, id)
  const message: CabinetMessage = {
    _tag: "Replace",
    caller: callerOf(account),
    contents,
    ...expected
  }
  const reply = yield* ask<CabinetReply>(service, at(id), message)
  if (reply._tag !== "Replaced") throw unexpected(reply)
  return reply.view
})

const put = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const account = yield* requireAccount(service, call)
    const id = yield* idOf(call)
    const input = yield* readInput(call, "cabinet")
    const view = yield* replace(service, call, account, id, input)
    return viewAnswer(cabinetDocument(service, id, view), { headers: ownersHeaders })
  })

const removed = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  account: AuthenticatedAccount,
  id: string
): Effect.fn.Return<void, HandlerFailure> {
  const expected = yield* unchanged(service, call, account, id)
  const message: CabinetMessage = { _tag: "Remove", caller: callerOf(account), ...expected }
  const reply = yield* ask<CabinetReply>(service, at(id), message)
  if (reply._tag !== "Done") throw unexpected(reply)
  yield* leave(service, id)
})

const remove = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const account = yield* requireAccount(service, call)
    yield* removed(service, call, account, yield* idOf(call))
    return emptyAnswer(204)
  })

const seeOther = (service: Service, path: string): HandlerAnswer =>
  emptyAnswer(303, [["Location", absoluteUri(service, path)], ["Cache-Control", "no-store"]])

/** PUT and DELETE from the forms of the cabinet's page: HTML has neither. */
const post = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const account = yield* requireAccount(service, call)
    const id = yield* idOf(call)
    const input = yield* readInput(call, "cabinet", { form: true })
    if (input._tag === "Form" && input.fields.get("method") === "delete") {
      yield* removed(service, call, account, id)
      return seeOther(service, collectionPath)
    }
    yield* replace(service, call, account, id, input)
    return seeOther(service, cabinetPath(id))
  })

/** The rows of cabinets. */
export const cabinetRoutes = (service: Service): ReadonlyArray<Route<ResourceHandler>> => [
  {
    pattern: collectionPath,
    methods: {
      GET: { handle: (call) => listCabinets(service, call) },
      POST: { handle: withFormRedisplay(() => makeForm(service), create(service)) }
    }
  },
  {
    pattern: `${collectionPath}/{cabinet}`,
    methods: {
      GET: { handle: read(service) },
      PUT: { handle: put(service) },
      POST: {
        handle: withFormRedisplay(({ request }) => changeForm(service, request.path), post(service))
      },
      DELETE: { handle: remove(service) }
    }
  }
]
