/** The handler of `/admin`. */
import { requireAdmin } from "../../auth/index.ts"
import { defineHandler, noStore, viewAnswer } from "../../pipeline/index.ts"
import { administrationView } from "./administration-view.ts"
import { operationFigures } from "./operation-figures.ts"

export const getAdministration = defineHandler(function*(service, call) {
  yield* requireAdmin(service, call)
  const figures = yield* operationFigures(service)
  return viewAnswer(administrationView(service, figures), { headers: noStore })
})
