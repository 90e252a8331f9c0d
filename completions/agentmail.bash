# Completions of agentmail for bash, as 'agentmail completions bash' prints them.

_agentmail_names() {
    agentmail list --all 2>/dev/null </dev/null | sed -n 's/^- \([A-Za-z0-9._-]*\) .*/\1/p'
}

_agentmail() {
    local IFS=$' \t\n' current=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]}
    local command='' place=0 offer='' i
    # To bash, --option=value is three words.
    if [[ $current == = ]]; then
        current=''
    elif [[ $option == = ]]; then
        option=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --) return ;;
        --body-file | --reply-to | --timeout | --timeout-ms | --once | --as | --spool | --from | --channel | --idle | --limit | --display | --parent | --state | --wake | --revive | --autoreply | --with | --older-than | --max-messages)
            [[ ${COMP_WORDS[i + 1]} == = ]] && i=$((i + 1))
            i=$((i + 1))
            ;;
        -*) ;;
        *) if [[ $command ]]; then place=$((place + 1)); else command=${COMP_WORDS[i]}; fi ;;
        esac
    done
    case $option in
        --as) offer="$(_agentmail_names)" ;;
        --from) offer="$(_agentmail_names)" ;;
        --idle) offer="$(_agentmail_names)" ;;
        --parent) offer="$(_agentmail_names)" ;;
        --state) offer="running idle" ;;
        --with) offer="$(_agentmail_names)" ;;
        --body-file | --reply-to | --timeout | --timeout-ms | --once | --as | --spool | --from | --channel | --idle | --limit | --display | --parent | --state | --wake | --revive | --autoreply | --with | --older-than | --max-messages) return ;;
        *)
            case $command:$place:$current in
            :*:-*) offer="--as --force --json --spool --version --help" ;;
            :*) offer="send wait inbox list reply ack status register whoami park abort show log channel hook install config completions cleanup demo" ;;
            send:*:-*) offer="--body-file --reply-to --await --timeout --timeout-ms --once --hold --as --force --json --spool --help" ;;
            send:0:*) offer="$(_agentmail_names) all" ;;
            wait:*:-*) offer="--from --channel --timeout --timeout-ms --exit-code --idle --as --force --json --spool --help" ;;
            inbox:*:-*) offer="--peek --from --limit --unhandled --as --force --json --spool --help" ;;
            list:*:-*) offer="--all --as --force --json --spool --help" ;;
            reply:*:-*) offer="--body-file --await --timeout --timeout-ms --once --as --force --json --spool --help" ;;
            ack:*:-*) offer="--as --force --json --spool --help" ;;
            status:*:-*) offer="--as --force --json --spool --help" ;;
            register:*:-*) offer="--display --parent --state --wake --revive --autoreply --sync --as --force --json --spool --help" ;;
            whoami:*:-*) offer="--as --force --json --spool --help" ;;
            park:*:-*) offer="--as --force --json --spool --help" ;;
            abort:*:-*) offer="--as --force --json --spool --help" ;;
            abort:0:*) offer="$(_agentmail_names)" ;;
            show:*:-*) offer="--as --force --json --spool --help" ;;
            log:*:-*) offer="--with --channel --limit --all --as --force --json --spool --help" ;;
            channel:*:-*) offer="--as --force --json --spool --help" ;;
            channel:0:*) offer="join leave list" ;;
            hook:*:-*) offer="--until-mail --spool --help" ;;
            install:*:-*) offer="--user --project --dry-run --uninstall --trust --json --spool --help" ;;
            install:0:*) offer="claude codex gemini opencode omp" ;;
            config:*:-*) offer="--as --force --json --spool --help" ;;
            completions:*:-*) offer="--help" ;;
            completions:0:*) offer="bash zsh fish" ;;
            cleanup:*:-*) offer="--older-than --max-messages --unread --vacuum --dry-run --json --spool --help" ;;
            demo:*:-*) offer="--help" ;;
            esac
            ;;
    esac
    # shellcheck disable=SC2207  # what is offered has no blanks
    COMPREPLY=($(compgen -W "$offer" -- "$current"))
}

complete -o default -F _agentmail agentmail
