/** The contract of the view port (`runtime/ports/view.ts`), run against each implementation. */
import { Effect, Exit, Scope } from "effect"
import { describe, expect, it } from "vitest"
import type { OpenView, ViewApi } from "../../runtime/ports/view.ts"
import { run } from "./storage-probe.ts"

export interface OpenedView {
  readonly view: ViewApi
  readonly close: () => Promise<void>
}

export const openView = async <E>(open: OpenView<E>): Promise<OpenedView> => {
  const scope = await run(Scope.make())
  const view = await run(Effect.provideService(open, Scope.Scope, scope))
  return { view, close: () => run(Scope.close(scope, Exit.void)) }
}

const put = (key: string, value: string | null = `of ${key}`) => ({ table: "t", key, value })

/** `isPersistent`: the view has its content when it is opened again. */
export const viewSuite = <E>(
  name: string,
  fresh: () => Promise<OpenView<E>>,
  isPersistent: boolean
): void => {
  describe(`view: ${name}`, () => {
    it("returns the last writes in order, with the note", async () => {
      const { close, view } = await openView(await fresh())
      expect(await view.note()).toBeUndefined()
      await view.write([put("b"), put("a"), put("é"), put("c")], "1")
      await view.write([put("b", null), put("a", "new"), { ...put("a"), table: "u" }], "2")
      await view.write([], "3")
      expect(await view.note()).toBe("3")
      expect(await view.get("t", "a")).toBe("new")
      expect(await view.getMany("t", ["c", "b", "a"])).toEqual(["of c", undefined, "new"])
      expect(await view.range("t", { limit: 2 })).toEqual([
        { key: "a", value: "new" },
        { key: "c", value: "of c" }
      ])
      const ranges = [{ limit: 9, reverse: true }, { limit: 9, prefix: "c" }, { limit: 0 }]
      expect(await view.keys("t", ranges)).toEqual([["é", "c", "a"], ["c"], []])
      expect(await view.keys("u", [{ limit: 9 }])).toEqual([["a"]])
      await close()
    })
    it("lets the last of several changes of a key win", async () => {
      const { close, view } = await openView(await fresh())
      await view.write([put("k", "1"), put("k", null), put("k", "2"), put("l"), put("l", null)], "")
      expect(await view.getMany("t", ["k", "l"])).toEqual(["2", undefined])
      await close()
    })
    it("is empty after it is cleared, and accepts new writes", async () => {
      const { close, view } = await openView(await fresh())
      await view.write([put("a"), put("b")], "1")
      await view.clear()
      expect(await view.note()).toBeUndefined()
      expect(await view.range("t", { limit: 9 })).toEqual([])
      await view.write([put("c")], "2")
      expect(await view.keys("t", [{ limit: 9 }])).toEqual([["c"]])
      await close()
    })
    it(isPersistent ? "has its content after a restart" : "is empty after a restart", async () => {
      const open = await fresh()
      const first = await openView(open)
      await first.view.write([put("a")], "1")
      await first.close()
      const { close, view } = await openView(open)
      expect([await view.note(), await view.get("t", "a")]).toEqual(
        isPersistent ? ["1", "of a"] : [undefined, undefined]
      )
      await close()
    })
  })
}
