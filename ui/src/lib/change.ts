/** What a caller wants changed, in words: a sentence, and what yes and no do. Pure. */
import type { ChangeQuestion } from "./bridge";
import * as m from "./messages";

export type ChangeWords = {
  title: string;
  /** What a yes leads to beyond the title. */
  text: string | null;
  yes: string;
  no: string;
};

/** `who` begins a sentence; `name` is the connector's. */
export function changeWords(change: ChangeQuestion, who: string, name: string): ChangeWords {
  switch (change.change) {
    case "add": {
      const yes = change.launch.now.kind === "run" ? m.add_and_run() : m.add_and_contact();
      return { title: m.change_add({ who, name }), text: null, yes, no: m.add_not() };
    }
    case "enable":
      return { title: m.change_enable({ who, name }), text: null, yes: m.turn_on(), no: m.leave_off() };
    case "disable":
      return {
        title: m.change_disable({ who, name }),
        text: m.change_disable_text(),
        yes: m.turn_off(),
        no: m.leave_on(),
      };
    case "remove":
      return { title: m.change_remove({ who, name }), text: m.remove_explain(), yes: m.remove_confirm(), no: m.keep() };
    case "reconnect":
      return { title: m.change_reconnect({ who, name }), text: null, yes: m.action_reconnect(), no: m.dont() };
    case "auto_approve":
      return {
        title: m.change_auto_approve({ who, name }),
        text: m.change_auto_approve_text(),
        yes: m.allow_unasked(),
        no: m.allow_not(),
      };
    case "set_secret":
      return {
        title: m.change_set_secret({ who, name }),
        text: change.replaces ? m.change_set_secret_replaces() : null,
        yes: change.replaces ? m.key_replace_yes() : m.key_set_yes(),
        no: change.replaces ? m.key_keep_present() : m.dont(),
      };
    case "forget_secret":
      return {
        title: m.change_forget_secret({ who, name }),
        text: m.key_remove_explain(),
        yes: m.key_remove_yes(),
        no: m.keep(),
      };
    case "sign_in":
      return {
        title: m.change_sign_in({ who, name }),
        text: m.change_sign_in_text(),
        yes: m.open_browser(),
        no: m.sign_in_not_now(),
      };
    case "sign_out":
      return { title: m.change_sign_out({ who, name }), text: null, yes: m.sign_out_yes(), no: m.sign_out_no() };
  }
}
