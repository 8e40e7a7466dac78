/**
 * Blocks of depositors (protocol §7): those of the service, which admins make, and those of a
 * mailbox, which its owner makes. Both have the same handlers, for different scopes.
 */
import { Effect } from "effect"
import { type Block, decodeBlock, mailboxBlocksMax } from "../../../actors/index.ts"
import type { MailboxMessage, MailboxReply } from "../../../actors/mailbox/index.ts"
import { type AuditedAction, auditedIfAllowed } from "../../audit/index.ts"
import { type AuthenticatedAccount, callerOf, requireAccount,
  requireAdmin } from "../../auth/index.ts"
import { serviceBlocksMax } from "../../limits.ts"
import { ask, type Call, createdAnswer, defineHandler, emptyAnswer, expectReply,
  type HandlerFailure, httpError, noStore, readFormMethod, seeOther, type Service,
  viewAnswer } from "../../pipeline/index.ts"
import { blocksTable } from "../../rates/index.ts"
import { mailboxRefOf } from "../mailboxes/index.ts"
import { readBlock } from "./block-input.ts"
import { blocksView, blockView } from "./block-views.ts"

/** Where blocks are, and who may change them. */
interface BlockScope {
  readonly account: AuthenticatedAccount
  /** The path of the collection. */
  readonly path: string
  readonly title: string
  readonly list: Effect.Effect<ReadonlyArray<Block>, HandlerFailure>
  /** How many blocks there may be; undefined where `add` alone checks it. */
  readonly blocksMax?: number
  readonly add: (block: Block) => Effect.Effect<void, HandlerFailure>
  /** Fails with 404 if there is none of this id. */
  readonly remove: (id: string) => Effect.Effect<void, HandlerFailure>
}

type ScopeOf = (service: Service, call: Call) => Effect.Effect<BlockScope, HandlerFailure>

const isInForce = (service: Service, { untilMs = Infinity }: Block): boolean =>
  service.nowMs() < untilMs

/** The blocks of the service; those that have ended are removed when another one is made. */
export const serviceScope: ScopeOf = Effect.fnUntraced(function*(service, call) {
  const account = yield* requireAdmin(service, call)
  const { records } = service
  const all = Effect.map(
    records.range(blocksTable, { limit: serviceBlocksMax }),
    (rows) => rows.flatMap(({ value }) => decodeBlock(value) ?? [])
  )
  const removal = (id: string) => ({ table: blocksTable, key: id, value: null })
  const scope: BlockScope = {
    account,
    path: "/blocks",
    title: "Blocked by the service",
    list: Effect.map(all, (blocks) => blocks.filter((block) => isInForce(service, block))),
    add: Effect.fnUntraced(function*(block): Effect.fn.Return<void, HandlerFailure> {
      const blocks = yield* all
      const ended = blocks.filter((one) => !isInForce(service, one) && one.id !== block.id)
      const isNew = blocks.every(({ id }) => id !== block.id)
      if (isNew && blocks.length - ended.length >= serviceBlocksMax) {
        return yield* httpError(
          "conflict",
          `the service has at most ${serviceBlocksMax} blocks: remove one first`
        )
      }
      const value = JSON.stringify(block)
      const removals = ended.slice(0, records.changesMax - 1).map(({ id }) => removal(id))
      yield* records.write([...removals, { table: blocksTable, key: block.id, value }])
    }),
    remove: Effect.fnUntraced(function*(id): Effect.fn.Return<void, HandlerFailure> {
      if ((yield* records.get(blocksTable, id)) === undefined) return yield* httpError("not-found")
      yield* records.write([removal(id)])
    })
  }
  return scope
})

/** The blocks of the mailbox in the path; its actor checks that the caller owns it. */
export const mailboxScope: ScopeOf = Effect.fnUntraced(function*(service, call) {
  const account = yield* requireAccount(service, call)
  const { parameters } = call
  const mailbox = mailboxRefOf(service, parameters)
  if (mailbox === undefined || mailbox.secret !== undefined) return yield* httpError("not-found")
  const caller = callerOf(account)
  const asking = (message: MailboxMessage) => ask<MailboxReply>(service, mailbox.to, message)
  const scope: BlockScope = {
    account,
    path: `/mailboxes/${mailbox.name}/blocks`,
    blocksMax: mailboxBlocksMax,
    title: `Blocked at ${mailbox.name}`,
    list: Effect.map(
      asking({ _tag: "Blocks", caller }),
      (reply) => expectReply(reply, "Blocks").blocks
    ),
    add: (block) => Effect.asVoid(asking({ _tag: "Block", caller, block })),
    remove: (id) => Effect.asVoid(asking({ _tag: "Unblock", caller, id }))
  }
  return scope
})

/** 409 without room for a block; one of the same id, of an earlier attempt, is replaced. */
const requireRoom = Effect.fnUntraced(function*(
  { blocksMax = Infinity, list }: BlockScope,
  block: Block
): Effect.fn.Return<void, HandlerFailure> {
  const others = (yield* list).filter(({ id }) => id !== block.id)
  if (others.length < blocksMax) return
  return yield* httpError("conflict", `a mailbox has at most ${blocksMax} blocks: remove one first`)
})

const auditedOf = <A>(
  service: Service,
  call: Call,
  { account }: BlockScope,
  action: AuditedAction,
  change: { readonly target: string; readonly detail?: string },
  allowed: Effect.Effect<unknown, HandlerFailure>,
  effect: Effect.Effect<A, HandlerFailure>
) =>
  auditedIfAllowed(
    service,
    call,
    { caller: callerOf(account), action, ...change },
    allowed,
    () => effect
  )

export const getBlocks = (scopeOf: ScopeOf) =>
  defineHandler(function*(service, call) {
    const { list, path, title } = yield* scopeOf(service, call)
    return viewAnswer(blocksView(service, path, title, yield* list), { headers: noStore })
  })

export const postBlocks = (scopeOf: ScopeOf) =>
  defineHandler(function*(service, call) {
    const scope = yield* scopeOf(service, call)
    // Who may not see the blocks learns nothing of what is valid.
    yield* scope.list
    const block = yield* readBlock(service, call)
    const target = `${scope.path}/${block.id}`
    const detail = `${block.kind} ${block.value}`
    const change = { target, detail }
    const room = requireRoom(scope, block)
    yield* auditedOf(service, call, scope, "block.create", change, room, scope.add(block))
    return createdAnswer(service, target, blockView(service, scope.path, block), noStore)
  })

const blockOf = Effect.fnUntraced(function*(
  { parameters }: Call,
  { list }: BlockScope
): Effect.fn.Return<Block, HandlerFailure> {
  const found = (yield* list).find(({ id }) => id === parameters.get("block"))
  return found ?? (yield* httpError("not-found"))
})

export const getBlock = (scopeOf: ScopeOf) =>
  defineHandler(function*(service, call) {
    const scope = yield* scopeOf(service, call)
    const block = yield* blockOf(call, scope)
    return viewAnswer(blockView(service, scope.path, block), { headers: noStore })
  })

const removeBlock = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  scope: BlockScope
): Effect.fn.Return<void, HandlerFailure> {
  const { id, kind, value } = yield* blockOf(call, scope)
  const change = { target: `${scope.path}/${id}`, detail: `${kind} ${value}` }
  yield* auditedOf(service, call, scope, "block.remove", change, Effect.void, scope.remove(id))
})

export const deleteBlock = (scopeOf: ScopeOf) =>
  defineHandler(function*(service, call) {
    yield* removeBlock(service, call, yield* scopeOf(service, call))
    return emptyAnswer(204)
  })

/** DELETE from the form of a page. */
export const postBlockForm = (scopeOf: ScopeOf) =>
  defineHandler(function*(service, call) {
    const scope = yield* scopeOf(service, call)
    yield* readFormMethod(call, "block", ["delete"])
    yield* removeBlock(service, call, scope)
    return seeOther(service, scope.path)
  })
