# Outlives the program, and kills the process groups that the program left running. Reads +ID when a
# group begins and -ID when it has ended. The input ends when the program ends, for whatever reason.
trap '' HUP INT TERM
groups=' '
while read -r line; do
    id=${line#?}
    case $line in
        +*) groups="$groups$id " ;;
        -*) groups="${groups%%" $id "*} ${groups#*" $id "}" ;;
    esac
done
for id in $groups; do kill -s KILL -- "-$id"; done
