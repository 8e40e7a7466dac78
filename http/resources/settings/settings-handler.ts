/** The handler of `/settings`. */
import { requireAdmin } from "../../auth/index.ts"
import { defineHandler, noStore, viewAnswer } from "../../pipeline/index.ts"
import { settingsView } from "./settings-view.ts"

export const getSettings = defineHandler(function*(service, call) {
  yield* requireAdmin(service, call)
  return viewAnswer(settingsView(service), { headers: noStore })
})
