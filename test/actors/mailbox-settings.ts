/** The settings of a mailbox whose owner set none. */
import type { OwnerSettings } from "../../actors/mailbox/protocol.ts"

export const defaultSettings: OwnerSettings = {
  deposit: "anyone",
  retention: "P30D",
  retentionMs: 30 * 86_400_000,
  fetch: "never",
  receipts: "none"
}
